//! Why there is no checkpoint, or no restore.

use crate::{
    cgroup, criu, process,
    store::{self, DamagedCheckpoint},
    workspace::TaskName,
};

/// The result of a checkpoint or a restore.
pub type Result<T, E = CheckpointerError> = std::result::Result<T, E>;

/// A checkpoint or a restore that failed.
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
    /// An operation on the task's control groups failed.
    #[error("the checkpoint of {task} failed: the quota of its vCPU can't be lifted")]
    Cgroup {
        /// The task that was to be checkpointed.
        task: TaskName,
        /// The control group's error.
        source: Box<cgroup::CgroupError>,
    },
    /// An operation on the task's processes failed.
    #[error("the checkpoint of {task} failed: the size of its memory is not known")]
    Process {
        /// The task whose memory was to be counted.
        task: TaskName,
        /// The kernel's error on the task's processes.
        source: process::ProcessError,
    },
    /// The owner of the task's directory is no user that a task may have.
    #[error("the checkpoint of {task} failed: the user of the task is not known")]
    User {
        /// The task whose user was looked for.
        task: TaskName,
        /// The error of reading the directory's owner.
        source: std::io::Error,
    },
    /// The task cannot have the user that its checkpoint has.
    #[error("{task} can't be restored as the user of its checkpoint")]
    UserTaken {
        /// The task that was to be restored.
        task: TaskName,
        /// Reason why the task can't have that user.
        source: crate::workspace::WorkspaceError,
    },
    /// The task has no checkpoint that can be restored.
    #[error("{task} has no undamaged checkpoint ({} damaged)", damaged.len())]
    NoCheckpoint {
        /// The task that was to be restored.
        task: TaskName,
        /// The task's damaged checkpoints, newest first.
        damaged: Vec<DamagedCheckpoint>,
    },
}

impl CheckpointerError {
    /// Whether the task may be damaged and must not go on.
    #[must_use]
    pub fn may_have_damaged(&self) -> bool {
        matches!(self, Self::Criu { source, .. } if source.may_have_damaged())
    }
}
