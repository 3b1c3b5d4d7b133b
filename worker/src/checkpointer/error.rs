//! Errors: a checkpoint could not be taken or restored.

use crate::{
    cgroup, criu, process,
    store::{self, DamagedCheckpoint},
    workspace::TaskName,
};

/// Result of taking or restoring a checkpoint.
pub type Result<T, E = CheckpointerError> = std::result::Result<T, E>;

/// Error: a checkpoint could not be taken or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointerError {
    /// A call of CRIU failed.
    #[error("the checkpoint of {task} failed in criu")]
    Criu {
        /// The task that was to be checkpointed.
        task: TaskName,
        /// The error of CRIU.
        source: Box<criu::CriuError>,
    },
    /// The checkpoint store failed.
    #[error("the checkpoint of {task} failed in the store")]
    Store {
        /// The task that was to be checkpointed.
        task: TaskName,
        /// The store's error.
        source: store::StoreError,
    },
    /// The CPU quota of the task's vCPU could not be lifted.
    #[error("the checkpoint of {task} failed: the quota of its vCPU can't be lifted")]
    Cgroup {
        /// The task that was to be checkpointed.
        task: TaskName,
        /// The control group's error.
        source: Box<cgroup::CgroupError>,
    },
    /// The size of the task's memory could not be determined.
    #[error("the checkpoint of {task} failed: the size of its memory is not known")]
    Process {
        /// The task whose memory was to be counted.
        task: TaskName,
        /// The error of reading the task's processes.
        source: process::ProcessError,
    },
    /// The owner of the task's directory can't be the user of a task.
    #[error("the checkpoint of {task} failed: the user of the task is not known")]
    User {
        /// The task whose user was looked for.
        task: TaskName,
        /// Why the owner of the task's directory could not be determined.
        source: std::io::Error,
    },
    /// The task can't be run as the user of its checkpoint.
    #[error("{task} can't be restored as the user of its checkpoint")]
    UserTaken {
        /// The task that was to be restored.
        task: TaskName,
        /// Why the user of the checkpoint isn't available on this host.
        source: crate::workspace::WorkspaceError,
    },
    /// The task has no undamaged checkpoint.
    #[error("{task} has no undamaged checkpoint ({} damaged)", damaged.len())]
    NoCheckpoint {
        /// The task that was to be restored.
        task: TaskName,
        /// The damaged checkpoints, newest first.
        damaged: Vec<DamagedCheckpoint>,
    },
}

impl CheckpointerError {
    /// Whether the failed operation may have damaged the task, which must not continue then.
    #[must_use]
    pub fn may_have_damaged(&self) -> bool {
        matches!(self, Self::Criu { source, .. } if source.may_have_damaged())
    }
}
