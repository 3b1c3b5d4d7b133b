//! Failures of commands, and their exit statuses.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use dormouse_coordinator::RemoteError;
use dormouse_policies::PlanError;
use dormouse_worker::agent::AgentError;

use crate::calibrate::CalibrateError;
use crate::live::LiveError;
use crate::said;
use dormouse_experiment::InputError;
use dormouse_experiment::chain;
use dormouse_report::jobs::JobsError;
use dormouse_report::output::OutputError;
use dormouse_report::twin::TwinError;
use dormouse_reproduce::engine::EngineError;
use dormouse_reproduce::sweep::SweepError;
use dormouse_view::Terminal;

use super::terminal;

/// A failure of a command: a message for the user, and whether the user or somebody else can fix it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input has to change: status 2.
    BadInput(String),
    /// The run failed: status 1.
    Broken(String),
    /// A live run was stopped on request, and can be resumed: status 3.
    Paused(String),
    /// The run is over, its results are written, and some of its tasks failed: status 4.
    TasksFailed(String),
}

impl Failure {
    /// Prints the failure: a line for each mistake, and on a terminal the lines of the file concerned.
    pub(crate) fn report(&self) -> ExitCode {
        let (Self::BadInput(text)
        | Self::Broken(text)
        | Self::Paused(text)
        | Self::TasksFailed(text)) = self;
        let to = Terminal { width: terminal::stderr_width(), has_colour: false };
        for line in text.lines() {
            // What stands in a file is indented.
            match line.starts_with(' ') {
                true => said::line(line),
                false => said::line(&terminal::wrapped_lines(to, &format!("dormouse: {line}"))),
            }
        }
        ExitCode::from(match self {
            Self::BadInput(_) => 2,
            Self::Broken(_) => 1,
            Self::Paused(_) => 3,
            Self::TasksFailed(_) => 4,
        })
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let for_people = std::io::stderr().is_terminal();
        Self::BadInput(if for_people { error.with_lines() } else { error.to_string() })
    }
}

/// Implements the conversion to `Failure` for error types that know whether the input has to change. Each entry names
/// the function that makes the message: [`chain`] for errors whose text leaves their causes out.
macro_rules! failures {
    ($($error:ty: $words:path,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let (text, is_bad_input) = ($words(&error), error.is_bad_input());
                if is_bad_input { Self::BadInput(text) } else { Self::Broken(text) }
            }
        }
    )*};
}

failures! {
    OutputError: ToString::to_string,
    LiveError: ToString::to_string,
    CalibrateError: ToString::to_string,
    TwinError: ToString::to_string,
    JobsError: chain,
    SweepError: chain,
    EngineError: chain,
    AgentError: chain,
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        Self::Broken(chain(&error))
    }
}

impl From<PlanError> for Failure {
    /// Converts the error that no plan can be made for an experiment that was checked before.
    fn from(error: PlanError) -> Self {
        Self::BadInput(error.to_string())
    }
}
