//! Errors of sweeps.

use std::path::PathBuf;

use dormouse_engine::drive::PlayError;
use dormouse_policies::PlanError;

use dormouse_experiment::InputError;
use dormouse_report::jobs::JobsError;
use dormouse_report::output::OutputError;

/// Reason for which a sweep can't be made.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A run of a cell can't be made.
    #[error("{case}, seed {seed}")]
    Run {
        /// Name of the cell in tables.
        case: String,
        /// Seed of the run.
        seed: u64,
        /// Error of the run.
        source: RunError,
    },
    /// The system refused an action on a file or folder.
    #[error("can't {doing} {}; check the path and the disk, or give another --out", .path.display())]
    Io {
        /// The action that failed, worded to follow "cannot".
        doing: &'static str,
        /// File or folder that the failed action concerns.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The table of runs can't be written as Apache Parquet, for this reason.
    #[error("samples.parquet can't be made: {0}; use samples.csv, which has the same rows")]
    Parquet(String),
    /// The folder for the results can't be used.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A live run could not be made; the text has its cell, its seed and the reason.
    #[error("the live run of {0}; see dormouse doctor, or leave out --live")]
    Live(String),
    /// The request makes no sense or conflicts with existing files; the text is the whole message.
    #[error("{0}")]
    BadInput(String),
}

/// Reason for which a virtual run can't be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No plan can be made with the seed.
    #[error("no plan meets the deadline; give workload.deadline more time")]
    Unschedulable(#[from] PlanError),
    /// The run stopped making progress before its work was done.
    #[error("the run got stuck; run it alone to see where")]
    Stuck(PlayError<JobsError>),
    /// The run's parallel jobs can't be read or run.
    #[error(transparent)]
    Jobs(Box<JobsError>),
}

impl SweepError {
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    /// Adds the cell and seed to the error of a run.
    pub(crate) fn of_run<E: Into<RunError>>(case: &str, seed: u64) -> impl Fn(E) -> Self {
        move |error| Self::Run { case: case.to_owned(), seed, source: error.into() }
    }

    /// Whether the user has to change the input.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Run { source: RunError::Jobs(error), .. } => error.is_bad_input(),
            Self::Run { source, .. } => matches!(source, RunError::Unschedulable(_)),
            Self::Output(error) => error.is_bad_input(),
            Self::BadInput(_) => true,
            Self::Io { .. } | Self::Live(_) | Self::Parquet(_) => false,
        }
    }
}

impl From<PlayError<JobsError>> for RunError {
    fn from(error: PlayError<JobsError>) -> Self {
        match error {
            PlayError::Outside(error) => error.into(),
            PlayError::Scheduler(why) => JobsError::Scheduler(why).into(),
            stuck => Self::Stuck(stuck),
        }
    }
}

impl From<JobsError> for RunError {
    fn from(error: JobsError) -> Self {
        Self::Jobs(Box::new(error))
    }
}

impl From<InputError> for SweepError {
    fn from(error: InputError) -> Self {
        Self::BadInput(error.to_string())
    }
}
