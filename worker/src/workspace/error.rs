//! Errors of operations on a worker's directory.

use std::{io, path::PathBuf};

use dormouse_folders::FolderError;

use super::{LeaseError, TaskName};

/// The result of an operation on a worker's directory.
pub type Result<T, E = WorkspaceError> = std::result::Result<T, E>;

/// An operation on a worker's directory that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// A directory can't be mounted or unmounted.
    #[error("can't {action} {}; {}", path.display(), crate::place::ProcessPlace::detect_place().to_mount())]
    Mount {
        /// The action that failed, worded to follow "cannot".
        action: &'static str,
        /// The directory that is mounted or unmounted.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The directory that the worker writes to is mounted read-only, and can't be mounted otherwise.
    #[error("{} is mounted read-only and can't be made writable here: {remedy}", path.display())]
    ReadOnly {
        /// The mount that is read-only.
        path: PathBuf,
        /// What the user has to add to the command.
        remedy: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A file or directory could not be made or read.
    #[error("can't {action} {}", path.display())]
    File {
        /// The action that failed, worded to follow "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A task has no user of its own.
    #[error("{task} has no user")]
    NoUser {
        /// The task, or the check of one.
        task: TaskName,
        /// Why there is no free user.
        source: LeaseError,
    },
    /// A directory could not be locked.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Another worker on this host uses the directory.
    #[error("another worker uses the directory {}; give each worker its own --root", path.display())]
    InUse {
        /// The path of the directory.
        path: PathBuf,
    },
    /// Another user may change the worker's directory.
    #[error(
        "{} can't be a worker's directory: {what}; give --root a directory that is this user's own, \
         or does not exist yet",
        path.display()
    )]
    NotOwn {
        /// The path of the directory.
        path: PathBuf,
        /// Why the directory is not the worker's own.
        what: String,
    },
    /// A mount namespace was to be entered after threads had been started.
    #[error(
        "the worker's mount namespace must be entered before its threads; there are {threads} already"
    )]
    TooLate {
        /// Number of threads of the process.
        threads: usize,
    },
    /// A name can't be used as a directory's name.
    #[error(
        "\"{name}\" can't be the name of a {what}: give 1 to 100 letters, digits, '.', '_' and '-', \
         not starting with '.'"
    )]
    Name {
        /// The kind of thing with this name: a run or a task.
        what: &'static str,
        /// The name that was refused.
        name: String,
    },
}

impl From<WorkspaceError> for io::Error {
    /// Extracts the kernel's error, for callers that describe the failed action in their own words.
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Mount { source, .. }
            | WorkspaceError::ReadOnly { source, .. }
            | WorkspaceError::File { source, .. } => source,
            WorkspaceError::Folder(error) => error.into(),
            other => Self::other(other),
        }
    }
}
