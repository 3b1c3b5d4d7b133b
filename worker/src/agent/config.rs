//! Configuration of an agent.

use std::{num::NonZero, path::PathBuf, thread, time::Duration};

use dormouse_identity::Token;

use super::cores::HostCores;
use crate::{
    cgroup::{CgroupHierarchy, own_cpu_quota},
    criu::find_criu,
    jail,
};

/// Configuration of a worker's agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Address of the coordinator, `host:port`.
    pub coordinator: String,
    /// Token with which the worker joins the run. See [`super::read_token`].
    pub token: Token,
    /// Name of the worker, which identifies it across restarts.
    pub name: String,
    /// Directory of the worker for tasks and checkpoints; no two workers may share one.
    pub root: PathBuf,
    /// Path of the program `dormouse-task`.
    pub task_program: PathBuf,
    /// Host cores that the worker may use, in thousandths.
    pub millicores: u32,
    /// Path of CRIU; `None`: the worker takes no checkpoints of memory. See [`find_criu`].
    pub criu: Option<PathBuf>,
    /// Time for which the worker tries to reach the coordinator at its start.
    pub patience: Duration,
    /// Process id of the process that started the worker. Until the first welcome the worker ends with that process,
    /// since no other process knows of the worker yet.
    pub parent: Option<i32>,
    /// Jail of the worker's tasks.
    pub jail: jail::JailRequest,
    /// Time for which the worker keeps its VMs without a connection; `None`: the time that the coordinator sets.
    pub hold: Option<Duration>,
}

impl AgentConfig {
    /// Makes the configuration of a worker with all cores that this process may use and the CRIU that is found.
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

    /// Makes the configuration of a worker without a coordinator, for trying it out.
    #[must_use]
    pub fn of_nobody(
        name: impl Into<String>,
        root: impl Into<PathBuf>,
        task_program: impl Into<PathBuf>,
    ) -> Self {
        Self::new("localhost:0", Token::of_nobody(), name, root, task_program)
    }
}

/// Returns the cores that this process may use, in thousandths: those of its affinity, which follows its cpuset,
/// limited by the quotas of its control group and of each visible one above it.
#[must_use]
pub fn available_millicores() -> u32 {
    let quota = CgroupHierarchy::detect_version().and_then(|hierarchy| own_cpu_quota(&hierarchy));
    let quota = quota.unwrap_or_else(|error| {
        tracing::debug!(%error, "no quota of processor time is known");
        None
    });
    cores_in_affinity().saturating_mul(1000).min(quota.unwrap_or(u32::MAX))
}

/// Returns the number of cores on which this process may run.
fn cores_in_affinity() -> u32 {
    let cores = HostCores::of_this_process().core_count();
    // One of more cores than a set has bits.
    let or_all = || thread::available_parallelism().map_or(1, NonZero::get);
    u32::try_from(if cores == 0 { or_all() } else { cores }).unwrap_or(u32::MAX)
}
