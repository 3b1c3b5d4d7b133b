//! The way of a new process into its control groups and its cell.

use std::{os::fd::OwnedFd, sync::Arc};

use crate::jail::JailCell;

/// The control groups and the jail that a new process enters before it runs its program.
#[derive(Debug)]
pub struct ProcessGroups {
    /// Files to which the new (single-threaded) process writes `0`, meaning itself.
    ///
    /// Version 1 gets `tasks` and not `cgroup.procs`: a thread that moves only itself takes no
    /// lock against all the forks and exits of the machine.
    pub(crate) files: Vec<OwnedFd>,
    /// Version 2: group in which the process is started (`CLONE_INTO_CGROUP`).
    pub(crate) born_in: Option<OwnedFd>,
    /// Namespaces and confinement of the tasks of a VM; `None` if they are not jailed.
    pub(crate) cell: Option<Arc<JailCell>>,
}
