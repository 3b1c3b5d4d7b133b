//! Errors of the checkpoint store.

use std::{io, path::PathBuf};

use crate::{contents::ContentError, directory};

/// The result of an operation on the checkpoint store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An operation on the checkpoint store that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An operation on a file or directory of the store failed.
    #[error("can't {action} {}", path.display())]
    File {
        /// The action that failed, worded to follow "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// An operation on the directory of the task failed.
    #[error(transparent)]
    Directory(#[from] directory::DirectoryError),
    /// A received content is not the requested one, or is incomplete.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A content that a checkpoint refers to was not received.
    #[error("the checkpoint is incomplete: the content {digest} was not received")]
    Missing {
        /// BLAKE3 of the content, in hexadecimal.
        digest: String,
    },
    /// A manifest that cannot be understood.
    #[error("the manifest {} is damaged", path.display())]
    Manifest {
        /// The path of the manifest.
        path: PathBuf,
        /// What is wrong with the manifest.
        source: serde_json::Error,
    },
    /// A manifest of another version of the format.
    #[error("the manifest {} has format {found}, this worker reads format {expected}", path.display())]
    Format {
        /// The path of the manifest.
        path: PathBuf,
        /// The format version of the manifest.
        found: u32,
        /// The format version that this worker reads.
        expected: u32,
    },
    /// A file doesn't match its checksum.
    #[error("the checkpoint is damaged: {} {what}", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the damaged file.
        what: String,
    },
    /// The manifest was not made by a process that has the key of the run.
    #[error("the checkpoint is of another run: the seal of {} does not match", path.display())]
    Seal {
        /// The path of the manifest.
        path: PathBuf,
    },
    /// A checkpoint is not the requested one.
    #[error("the received checkpoint is not the requested one: it is {what}")]
    Another {
        /// What the checkpoint is, and what was requested.
        what: String,
    },
    /// A path in a manifest leads out of the checkpoint.
    #[error("the manifest names \"{name}\", which is not a plain path inside the checkpoint")]
    Path {
        /// The path in the manifest.
        name: String,
    },
    /// A file outside the task's directory that the task had open has changed since the checkpoint.
    #[error(
        "the task had {} open, which had {expected} bytes then and {found} now; \
         only files in a task's own directory are saved with a checkpoint",
        path.display()
    )]
    OutsideFile {
        /// The path of the file.
        path: PathBuf,
        /// The file's size at the checkpoint, in bytes.
        expected: u64,
        /// The file's size now; `none` if the file is gone.
        found: String,
    },
    /// The received stream is not a checkpoint.
    #[error("what is received is not a checkpoint: {what}")]
    Stream {
        /// What is wrong with the stream.
        what: String,
    },
    /// Reading or writing a stream of a checkpoint failed.
    #[error("the transfer of a checkpoint broke off while {action}")]
    Transfer {
        /// The action that failed, worded to follow "while".
        action: &'static str,
        /// The stream's error.
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn file_error(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
