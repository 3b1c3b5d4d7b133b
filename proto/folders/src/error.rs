//! What goes wrong with a folder that is held.

use std::{io, path::PathBuf};

/// An operation on a folder that is held, or on what is in it, that failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {action} {}", path.display())]
pub struct FolderError {
    /// The action that failed, worded to follow "cannot".
    pub(crate) action: &'static str,
    /// The file or directory.
    pub(crate) path: PathBuf,
    /// The error of the kernel.
    pub(crate) source: io::Error,
}

impl From<FolderError> for io::Error {
    /// Extracts the kernel's error, for callers that describe the failed action in their own words.
    fn from(error: FolderError) -> Self {
        error.source
    }
}
