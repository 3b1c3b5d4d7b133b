//! Errors of files of requests.

use std::io;
use std::path::{Path, PathBuf};

use dormouse_input::{FlawedRow, RowsError};

use super::own::HEADER;
use crate::requests::offer::OfferRefusal;

/// Reason why a file of requests can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RequestFileError {
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A row of the file is wrong.
    #[error("{}, line {line}: {refusal}", path.display())]
    Row {
        /// Path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The problem with the row, and the remedy.
        refusal: OfferRefusal,
    },
    /// The file as a whole can't be used as it is requested.
    #[error("{}: {refusal}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The problem with the file, and the remedy.
        refusal: OfferRefusal,
    },
    /// The file has no requests.
    #[error("{} has no requests; write a row for each under {HEADER}", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Flaw of a file, without its path, which the caller adds.
#[derive(Debug)]
pub(super) enum RequestFileFlaw {
    Io(io::Error),
    Row { line: u64, refusal: OfferRefusal },
    File(OfferRefusal),
    Empty,
}

impl RequestFileFlaw {
    /// The error with the path of the file.
    pub(super) fn with_path(self, path: &Path) -> RequestFileError {
        let path = path.to_owned();
        match self {
            Self::Io(source) => RequestFileError::Io { path, source },
            Self::Row { line, refusal } => RequestFileError::Row { path, line, refusal },
            Self::File(refusal) => RequestFileError::File { path, refusal },
            Self::Empty => RequestFileError::Empty { path },
        }
    }

    /// A flaw of the row on line `line`.
    pub(super) const fn of_row(line: u64, refusal: OfferRefusal) -> Self {
        Self::Row { line, refusal }
    }
}

impl From<RowsError> for RequestFileFlaw {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Read(error) => Self::Io(error),
            RowsError::Row(FlawedRow { line, what, .. }) => Self::Row {
                line,
                refusal: OfferRefusal::new(what, "give a CSV file of requests with one row a line"),
            },
        }
    }
}

impl From<io::Error> for RequestFileFlaw {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
