//! What goes wrong with a folder that is held.

use std::{io, path::PathBuf};

/// An operation on a folder that is held, or on what is in it, that failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {action} {}", path.display())]
pub struct FolderError {
    /// What was tried, as it stands after "cannot".
    pub(crate) action: &'static str,
    /// The file or directory.
    pub(crate) path: PathBuf,
    /// What the kernel said.
    pub(crate) source: io::Error,
}

impl From<FolderError> for io::Error {
    /// Returns only the kernel's error, for callers who tell in their own words what was tried.
    fn from(error: FolderError) -> Self {
        error.source
    }
}
