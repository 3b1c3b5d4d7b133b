//! What goes wrong with a folder that is held.

use std::{io, path::PathBuf};

/// Error: an operation on a locked folder, or on a file inside it, failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {action} {}", path.display())]
pub struct FolderError {
    /// The action that failed, worded to follow "cannot".
    pub(crate) action: &'static str,
    /// The file or directory on which the action failed.
    pub(crate) path: PathBuf,
    /// The kernel's error about the failed action.
    pub(crate) source: io::Error,
}

impl From<FolderError> for io::Error {
    /// Extracts the kernel's error, for callers that describe the failed action in their own words.
    fn from(error: FolderError) -> Self {
        error.source
    }
}
