//! Errors of a progress page.

use std::io;
use std::path::PathBuf;

/// Reason why a progress page cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// The file cannot be opened, sized or mapped.
    #[error("progress file {}: can't be {what}; give a path in a writable directory", path.display())]
    Io {
        /// The progress file.
        path: PathBuf,
        /// The operation that failed: "created", "opened", "sized", "mapped", "written" or "read".
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is there but is not a progress page of this version.
    #[error("progress file {}: {what}; give the file the task was started with", path.display())]
    NotAPage {
        /// The progress file.
        path: PathBuf,
        /// The flaw, in words.
        what: String,
    },
}
