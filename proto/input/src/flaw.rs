//! Reasons why a file can't be used.

use std::io;

use crate::{FlawedRow, NoColumn, RowsError};

/// Reason why a file can't be used; the caller adds the file's path.
#[derive(Debug, thiserror::Error)]
pub enum FileFlaw {
    /// The file can't be read or unpacked.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A row of the file can't be used.
    #[error(transparent)]
    Row(#[from] FlawedRow),
    /// The file as a whole is not of the expected kind.
    #[error("{what}; {remedy}")]
    Whole {
        /// What is wrong with the whole file, in words.
        what: String,
        /// What the user should do about the file, in words.
        remedy: String,
    },
}

impl FileFlaw {
    /// A flaw of the whole file.
    pub fn whole(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Whole { what: what.into(), remedy: remedy.into() }
    }
}

impl From<RowsError> for FileFlaw {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Read(error) => Self::Read(error),
            RowsError::Row(row) => Self::Row(row),
        }
    }
}

impl From<NoColumn> for FileFlaw {
    fn from(NoColumn { what, remedy }: NoColumn) -> Self {
        Self::Whole { what, remedy }
    }
}
