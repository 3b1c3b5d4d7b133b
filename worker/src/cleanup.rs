//! Cleaning up at a worker's start: removing the remains of a crashed worker.

use std::{path::PathBuf, time::Duration};

use crate::{
    cgroup::{self, CgroupHierarchy, SweptGroups},
    store::{self, LocalCheckpoints},
    workspace::{self, Workspace},
};

/// What cleaning up after dead workers found and removed.
#[derive(Debug, Default)]
pub struct CleanedUp {
    /// Control groups of dead workers, with the processes killed in them.
    pub groups: SweptGroups,
    /// Checkpoints of dead workers, by run.
    pub checkpoints: Vec<PathBuf>,
}

/// The start-up clean-up failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CleanupError {
    /// Control groups or processes of a dead worker are still there.
    #[error("can't remove the control groups of a dead worker")]
    Cgroup(#[source] cgroup::CgroupError),
    /// The checkpoint store could not be cleaned up.
    #[error("can't clean up the checkpoint store")]
    Store(#[source] store::StoreError),
    /// The directories of tasks could not be cleaned up.
    #[error("can't clean up the directories of tasks")]
    Workspace(#[source] workspace::WorkspaceError),
}

/// Removes processes and groups of dead workers, and the checkpoints in `store` and the task
/// directories of `workspace`, whose lock says that no other worker uses them.
///
/// A worker that starts is a new host of its run, or belongs to another run: the coordinator sends a checkpoint that
/// the run still needs, and a checkpoint of a different run with the same name must not be used instead.
///
/// Mounts need no clean-up: they were in the dead worker's mount namespace and went with it.
///
/// # Errors
/// Where something cannot be removed within `deadline` per tree.
pub fn clean_up(
    hierarchy: &CgroupHierarchy,
    workspace: &Workspace,
    store: &LocalCheckpoints,
    deadline: Duration,
) -> Result<CleanedUp, CleanupError> {
    let groups = cgroup::sweep_stale(hierarchy, deadline).map_err(CleanupError::Cgroup)?;
    let checkpoints = store.remove_all().map_err(CleanupError::Store)?;
    workspace.remove_all_tasks().map_err(CleanupError::Workspace)?;
    Ok(CleanedUp { groups, checkpoints })
}
