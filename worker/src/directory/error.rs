//! What goes wrong with a task's directory.

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
        /// The operation that failed, as a phrase that follows "cannot".
        action: &'static str,
        /// The path; relative to the task's directory if the file is inside it.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The directory has something that no checkpoint can hold, or that no task may have.
    #[error("\"{}\" in the task's directory {why}", one_line(path, SHOWN))]
    Refused {
        /// The path of the file, relative to the task's directory.
        path: String,
        /// The reason for the refusal, and the remedy.
        why: String,
    },
    /// The directory holds more than is allowed.
    #[error("the task's directory has {what}")]
    Beyond {
        /// The kind of thing of which there is too much, and the limit.
        what: String,
    },
    /// A file content does not match its digest.
    #[error("the content {digest} is damaged: {what}")]
    Damaged {
        /// BLAKE3 of the content, in hexadecimal.
        digest: String,
        /// The difference, in words.
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
