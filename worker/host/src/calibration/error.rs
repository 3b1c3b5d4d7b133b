//! Why a calibration can't be used, or not be kept.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of the file of a calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The file holds something else, or half of it.
    #[error("{}: {why}; remove it, or measure again with `dormouse calibrate`", .path.display())]
    Damaged {
        /// File of the calibration.
        path: PathBuf,
        /// The flaw, in words.
        why: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}; name another file with {option}", .path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// File on which it was tried.
        path: PathBuf,
        /// The option that names it.
        option: &'static str,
        /// The obstacle, in words.
        source: io::Error,
    },
}

impl CalibrationError {
    /// Error for what the system refused, with the option of the command that names another file.
    pub fn io(
        doing: &'static str,
        path: &Path,
        option: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, option, source }
    }
}
