//! Why parallel jobs can't be had, or what becomes of them not be written.

use dormouse_engine::jobs::SimulationError;
use dormouse_program::ProgramError;
use dormouse_workload::WorkloadError;

use crate::output::OutputError;

/// Why parallel jobs can't be had, or what becomes of them not be written.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// The workload can't be read or made.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Jobs that can't be scheduled.
    #[error("{0}")]
    Schedule(String),
    /// A scheduler that is a program can't be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A scheduler that is a program failed while it ran.
    #[error("{0}")]
    Scheduler(String),
    /// A result can't be written, or a log not read.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// The system refused to do this with a path.
pub(crate) fn refused_io(
    what: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> JobsError {
    let path = path.to_owned();
    move |error| OutputError::io(what, &path, error).into()
}

impl JobsError {
    /// Whether it is the user's input that has to change.
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
