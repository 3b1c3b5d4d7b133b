//! How a command fails, and its exit status.

use std::io::IsTerminal as _;
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
    /// Says it: a line for each thing that is wrong, and on a terminal what stands there.
    pub(crate) fn report(&self) -> ExitCode {
        let (Self::BadInput(text) | Self::Broken(text)) = self;
        for line in text.lines() {
            // What stands in a file is indented.
            eprintln!("{}{line}", if line.starts_with(' ') { "" } else { "dormouse: " });
        }
        ExitCode::from(match self {
            Self::BadInput(_) => 2,
            Self::Broken(_) => 1,
        })
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let for_people = std::io::stderr().is_terminal();
        Self::BadInput(if for_people { error.with_lines() } else { error.to_string() })
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
