//! What goes wrong with a folder that is held.

use std::{io, path::PathBuf};

/// An operation on a folder that is held, or on what is in it, that failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {action} {}", path.display())]
pub struct FolderError {
    /// The operation that failed, as a phrase that follows "cannot".
    pub(crate) action: &'static str,
    /// The file or directory.
    pub(crate) path: PathBuf,
    /// The kernel's error.
    pub(crate) source: io::Error,
}

impl From<FolderError> for io::Error {
    /// Takes the kernel's error alone, for callers that describe the failed operation in their own words.
    fn from(error: FolderError) -> Self {
        error.source
    }
}
