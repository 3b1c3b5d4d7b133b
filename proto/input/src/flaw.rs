//! Why a file can't be used.

use std::io;

use crate::{FlawedRow, NoColumn, RowsError};

/// Why a file can't be used. The caller knows its path, and says it.
#[derive(Debug, thiserror::Error)]
pub enum FileFlaw {
    /// The file can't be read or unpacked.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line of the file can't be used.
    #[error(transparent)]
    Row(#[from] FlawedRow),
    /// The file as a whole is not what it is taken for.
    #[error("{what}; {remedy}")]
    Whole {
        /// The flaw, in words.
        what: String,
        /// The remedy, in words.
        remedy: String,
    },
}

impl FileFlaw {
    /// A flaw of the file as a whole.
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
