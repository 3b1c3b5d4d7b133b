//! What goes wrong with checkpoints.

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
        /// The operation that failed, as the words after "can't".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// An operation on the task's directory failed.
    #[error(transparent)]
    Directory(#[from] directory::DirectoryError),
    /// A content that came is not the one that was asked for, or did not come whole.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A content that a checkpoint refers to and that has not come.
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
        /// The version of the format that the manifest has.
        found: u32,
        /// The version of the format that this worker reads.
        expected: u32,
    },
    /// A file that is not what its checksum says.
    #[error("the checkpoint is damaged: {} {what}", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the file.
        what: String,
    },
    /// A manifest that nobody made who has the key of the run.
    #[error("the checkpoint is of another run: the seal of {} does not match", path.display())]
    Seal {
        /// The path of the manifest.
        path: PathBuf,
    },
    /// A checkpoint that is another than was asked for.
    #[error("the received checkpoint is not the requested one: it is {what}")]
    Another {
        /// What the received checkpoint is, and what was asked for.
        what: String,
    },
    /// A path in a manifest that leads out of the checkpoint.
    #[error("the manifest names \"{name}\", which is not a plain path inside the checkpoint")]
    Path {
        /// The path in the manifest.
        name: String,
    },
    /// A file outside of the task's directory that the task had open has changed since the
    /// checkpoint.
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
        /// The file's size now; `none` where it is gone.
        found: String,
    },
    /// A stream that is no checkpoint.
    #[error("what is received is not a checkpoint: {what}")]
    Stream {
        /// What is wrong with the stream.
        what: String,
    },
    /// The stream failed.
    #[error("the transfer of a checkpoint broke off while {action}")]
    Transfer {
        /// The part of the transfer that was under way, as the words after "while".
        action: &'static str,
        /// What the stream said.
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
