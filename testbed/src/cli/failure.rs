//! How a command fails, and its exit status.

use std::process::ExitCode;

use crate::experiment::InputError;
use crate::jobs::JobsError;
use crate::live::LiveError;
use crate::output::OutputError;

/// A message for a person, and whose fault it is.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input has to change: status 2.
    BadInput(String),
    /// The run broke: status 1.
    Broken(String),
}

impl Failure {
    /// Says it, in one line.
    pub(crate) fn report(&self) -> ExitCode {
        let (Self::BadInput(text) | Self::Broken(text)) = self;
        eprintln!("dormouse: {text}");
        ExitCode::from(match self {
            Self::BadInput(_) => 2,
            Self::Broken(_) => 1,
        })
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::BadInput(error.to_string())
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        if error.is_bad_input() {
            Self::BadInput(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        if error.is_bad_input() {
            Self::BadInput(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}

impl From<JobsError> for Failure {
    fn from(error: JobsError) -> Self {
        let text = crate::chain::chain(&error);
        if error.is_bad_input() { Self::BadInput(text) } else { Self::Broken(text) }
    }
}
