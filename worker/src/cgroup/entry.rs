//! The way of a new process into its groups.

use std::{
    fs::OpenOptions,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    path::PathBuf,
};

use super::{Error, Hierarchy, Result};

/// How a new process is put into its groups before it runs its program.
#[derive(Debug)]
pub struct Entry {
    /// Files to which the new (single-threaded) process writes `0`, meaning itself.
    ///
    /// Version 1 gets `tasks` and not `cgroup.procs`: a thread that moves only itself takes no
    /// lock against all the forks and exits of the machine.
    pub(crate) files: Vec<OwnedFd>,
    /// Version 2: the group to be born in (`CLONE_INTO_CGROUP`).
    pub(crate) born_in: Option<OwnedFd>,
}

impl Entry {
    pub(super) fn open(hierarchy: &Hierarchy, groups: &[PathBuf]) -> Result<Self> {
        let mut entry = Self { files: Vec::new(), born_in: None };
        for group in groups {
            let open = |path: PathBuf, options: &mut OpenOptions| {
                options
                    .open(&path)
                    .map(OwnedFd::from)
                    .map_err(|source| Error::Read { path, source })
            };
            if hierarchy.is_v2() {
                let directory =
                    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).to_owned();
                entry.born_in = Some(open(group.clone(), &mut directory.clone())?);
                // For those who fork by other means than clone3.
                entry.files.push(open(group.join("cgroup.procs"), OpenOptions::new().write(true))?);
            } else {
                entry.files.push(open(group.join("tasks"), OpenOptions::new().write(true))?);
            }
        }
        Ok(entry)
    }
}
