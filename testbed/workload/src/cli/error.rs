//! What can go wrong on the command line.

use std::io;
use std::path::PathBuf;

use crate::models::{EstimatesError, ModelError};
use crate::swf::SwfError;

/// Why `dormouse workload` stopped.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The log.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The estimates.
    #[error(transparent)]
    Estimates(#[from] EstimatesError),
    /// A result can't be written.
    #[error("can't write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A factor or load that is none.
    #[error("--{option} must be above 0, not {value}")]
    NotPositive {
        /// The option's name, without its dashes.
        option: &'static str,
        /// The value that was given.
        value: f64,
    },
    /// A log that has no load to scale.
    #[error("{} has no load to scale: it needs two jobs submitted at different times", path.display())]
    NoLoad {
        /// The file of the log.
        path: PathBuf,
    },
}

impl From<std::convert::Infallible> for CliError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl CliError {
    /// Exit status: 2 if the input is at fault, 1 otherwise.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Write { .. } => 1,
            _ => 2,
        }
    }
}
