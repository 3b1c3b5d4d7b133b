//! Errors of writing results and reading logs.

use std::io;
use std::path::{Path, PathBuf};

use dormouse_log::LogError;

/// Error of writing results or of reading a log.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The folder of a run, or an input file of the run, can't be used in its present state.
    #[error("{}: {why}", .path.display())]
    Unfit {
        /// The folder or input file that can't be used.
        path: PathBuf,
        /// Problem with the folder or input file, and the remedy, in words.
        why: String,
    },
    /// The folder wanted for results can't be used.
    #[error("--out {}: {why}", .path.display())]
    Out {
        /// Folder given with `--out`.
        path: PathBuf,
        /// Problem with the folder for results, and the remedy, in words.
        why: String,
    },
    /// The system refused an operation on a file or folder.
    #[error("can't {doing} {}: {source}; {}", .path.display(), remedy(.source))]
    Io {
        /// The action that failed, worded to follow "cannot".
        doing: &'static str,
        /// The file or folder on which the operation failed.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The log of a run can't be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl OutputError {
    /// Makes an error of an operation that the system refused; `doing` stands after "cannot".
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }

    /// Makes an error about a folder wanted for results; `why` gives the problem and the remedy.
    pub(super) fn out(path: &Path, why: impl Into<String>) -> Self {
        Self::Out { path: path.to_path_buf(), why: why.into() }
    }

    /// Makes the error for a file in the place of a folder for results.
    pub fn is_a_file(path: &Path) -> Self {
        Self::out(path, "it is a file; give a folder, or one to be made")
    }

    /// Whether the error is in the user's input.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Unfit { .. } | Self::Out { .. } => true,
            Self::Log(error) => error.is_bad_input(),
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::ReadOnlyFilesystem
            ),
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there, or write elsewhere with --out"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "write where you may, with --out"
        }
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::NotADirectory => "a part of the path is a file: check it",
        _ => "check the path and the disk",
    }
}
