//! Errors of reading and keeping a calibration.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of the file of a calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The file is not a calibration, or is incomplete.
    #[error("{}: {why}; remove it, or measure again with `dormouse calibrate`", .path.display())]
    Damaged {
        /// File of the calibration.
        path: PathBuf,
        /// The flaw of the calibration's file, in words.
        why: String,
    },
    /// The system refused an operation.
    #[error("can't {doing} {}: {source}; name another file with {option}", .path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// File on which the action failed.
        path: PathBuf,
        /// The option of the command line that names the file.
        option: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl CalibrationError {
    /// Error for a refused file operation, with the option that names another file.
    pub fn io(
        doing: &'static str,
        path: &Path,
        option: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, option, source }
    }
}
