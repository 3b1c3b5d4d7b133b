//! Errors about parallel jobs.

use dormouse_engine::jobs::SimulationError;
use dormouse_program::ProgramError;
use dormouse_workload::WorkloadError;

use crate::output::OutputError;

/// Error of reading parallel jobs or of writing their results.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// The workload can't be read or generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The jobs can't be scheduled.
    #[error("{0}")]
    Schedule(String),
    /// A scheduler program can't be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A scheduler program failed during the run.
    #[error("{0}")]
    Scheduler(String),
    /// A result can't be written, or a log can't be read.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Makes an error of an operation that the system refused; `what` is the verb before the path.
pub(crate) fn refused_io(
    what: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> JobsError {
    let path = path.to_owned();
    move |error| OutputError::io(what, &path, error).into()
}

impl JobsError {
    /// Whether the error is in the user's input.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Output(error) => error.is_bad_input(),
            Self::Scheduler(_) => false,
            _ => true,
        }
    }
}

impl From<SimulationError<Self>> for JobsError {
    fn from(error: SimulationError<Self>) -> Self {
        match error {
            SimulationError::Outside(error) => error,
            SimulationError::Scheduler(why) => Self::Scheduler(why),
            other => Self::Schedule(other.to_string()),
        }
    }
}
