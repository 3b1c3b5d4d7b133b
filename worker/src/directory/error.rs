//! Errors of operations on a task's directory.

use std::{io, path::PathBuf};

use dormouse_units::one_line;

/// Longest part of a path that an error shows, in bytes: tasks choose the names, which may be long.
const SHOWN: usize = 200;

/// The result of an operation on a task's directory.
pub type Result<T, E = DirectoryError> = std::result::Result<T, E>;

/// An operation on a task's directory that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The system refuses an operation on a file.
    #[error("can't {action} {} in the task's directory", one_line(&path.to_string_lossy(), SHOWN))]
    File {
        /// The action that failed, worded to follow "cannot".
        action: &'static str,
        /// The path; relative to the directory if it is inside.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The directory has something that no checkpoint can hold, or that no task may have.
    #[error("\"{}\" in the task's directory {why}", one_line(path, SHOWN))]
    Refused {
        /// The path of the file, relative to the task's directory.
        path: String,
        /// What is wrong with the file at this path, and what to do.
        why: String,
    },
    /// The directory holds more than is allowed.
    #[error("the task's directory has {what}")]
    Beyond {
        /// What the directory holds too much of, and the limit, in words.
        what: String,
    },
    /// A content doesn't match its digest.
    #[error("the content {digest} is damaged: {what}")]
    Damaged {
        /// BLAKE3 of the content, in hexadecimal.
        digest: String,
        /// What is wrong with the damaged content.
        what: String,
    },
}

impl DirectoryError {
    pub(crate) fn file_error(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    pub(crate) fn refused_path(path: &str, why: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), why: why.into() }
    }
}
