//! What an agent is told.

use std::{num::NonZero, path::PathBuf, thread, time::Duration};

use dormouse_identity::Token;

use super::cores::HostCores;
use crate::{
    cgroup::{CgroupHierarchy, own_cpu_quota},
    criu::find_criu,
    jail,
};

/// What an agent is told.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The coordinator's address, `host:port`.
    pub coordinator: String,
    /// The token by which it joins the run. See [`super::read_token`].
    pub token: Token,
    /// The worker's name: the same name is the same worker after a restart.
    pub name: String,
    /// The worker's own directory, for tasks and checkpoints; no two workers share one.
    pub root: PathBuf,
    /// The program `dormouse-task`.
    pub task_program: PathBuf,
    /// Host cores it may use, in thousandths.
    pub millicores: u32,
    /// CRIU; without one there are no checkpoints. See [`find_criu`].
    pub criu: Option<PathBuf>,
    /// The time for which to try to reach the coordinator at first.
    pub patience: Duration,
    /// The process that starts it, if it is to end with that one until its first welcome: nobody else
    /// knows of it by then.
    pub parent: Option<i32>,
    /// The jail of its tasks.
    pub jail: jail::JailRequest,
    /// The time for which to hold the VMs without a connection; `None`: as the coordinator says.
    pub hold: Option<Duration>,
}

impl AgentConfig {
    /// A worker with all cores this process may use and the CRIU that is found.
    #[must_use]
    pub fn new(
        coordinator: impl Into<String>,
        token: Token,
        name: impl Into<String>,
        root: impl Into<PathBuf>,
        task_program: impl Into<PathBuf>,
    ) -> Self {
        Self {
            coordinator: coordinator.into(),
            token,
            name: name.into(),
            root: root.into(),
            task_program: task_program.into(),
            millicores: available_millicores(),
            criu: find_criu(None),
            patience: Duration::from_secs(30),
            parent: None,
            jail: jail::JailRequest::default(),
            hold: None,
        }
    }

    /// A worker that dials nobody, to be tried out.
    #[must_use]
    pub fn of_nobody(
        name: impl Into<String>,
        root: impl Into<PathBuf>,
        task_program: impl Into<PathBuf>,
    ) -> Self {
        Self::new("localhost:0", Token::of_nobody(), name, root, task_program)
    }
}

/// The cores this process may use, in thousandths: those of its affinity, which follows its cpuset,
/// but no more than the quota of its own control group and of each above that can be seen.
#[must_use]
pub fn available_millicores() -> u32 {
    let quota = CgroupHierarchy::detect_version().and_then(|hierarchy| own_cpu_quota(&hierarchy));
    let quota = quota.unwrap_or_else(|error| {
        tracing::debug!(%error, "no quota of processor time is known");
        None
    });
    cores_in_affinity().saturating_mul(1000).min(quota.unwrap_or(u32::MAX))
}

/// The number of cores that this process may run on.
fn cores_in_affinity() -> u32 {
    let cores = HostCores::of_this_process().core_count();
    // One of more cores than a set has bits.
    let or_all = || thread::available_parallelism().map_or(1, NonZero::get);
    u32::try_from(if cores == 0 { or_all() } else { cores }).unwrap_or(u32::MAX)
}
