//! Errors of many runs.

use std::path::PathBuf;

use dormouse_engine::drive::PlayError;
use dormouse_policies::PlanError;

use dormouse_experiment::InputError;
use dormouse_report::jobs::JobsError;
use dormouse_report::output::OutputError;

/// Why a sweep can't be made.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A run of a cell can't be made.
    #[error("{case}, seed {seed}")]
    Run {
        /// The cell's name in tables.
        case: String,
        /// Seed of the run.
        seed: u64,
        /// What keeps it from being made.
        source: RunError,
    },
    /// The system refused.
    #[error("cannot {doing} {}; check the path and the disk, or give another --out", .path.display())]
    Io {
        /// What was tried, as it stands after "cannot".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// The table of runs does not fit into Apache Parquet: why.
    #[error("samples.parquet can't be made: {0}; use samples.csv, which has the same")]
    Parquet(String),
    /// The folder for the results can't be used.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A live run could not be made: of which cell and seed, and why.
    #[error("the live run of {0}; see dormouse doctor, or leave out --live")]
    Live(String),
    /// What was asked for makes no sense, or doesn't go with what is there: the whole message.
    #[error("{0}")]
    BadInput(String),
}

/// Why a run in virtual time can't be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no plan under its seed.
    #[error("no plan can be made; give workload.deadline more time")]
    Unschedulable(#[from] PlanError),
    /// The run went nowhere.
    #[error("the run got stuck; run it alone to see where")]
    Stuck(PlayError<JobsError>),
    /// The run's parallel jobs can't be had, or not be run.
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

    /// Makes the error of the run of a cell under a seed.
    pub(crate) fn of_run<E: Into<RunError>>(case: &str, seed: u64) -> impl Fn(E) -> Self {
        move |error| Self::Run { case: case.to_owned(), seed, source: error.into() }
    }

    /// Whether it is the user's input that has to change.
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
