//! What can go wrong with many runs.

use std::path::PathBuf;

use dormouse_engine::drive::PlayError;
use dormouse_policies::PlanError;

use crate::jobs::JobsError;

/// Why a sweep can't be made.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A cell has no plan under some seed.
    #[error("{case}, seed {seed}: no plan can be made; give workload.deadline more time")]
    Unschedulable {
        /// The cell.
        case: String,
        /// The seed.
        seed: u64,
        /// The scheduler's error.
        source: PlanError,
    },
    /// A run went nowhere.
    #[error("{case}, seed {seed}: the run got stuck; run it alone to see where")]
    Stuck {
        /// The cell.
        case: String,
        /// The seed.
        seed: u64,
        /// What it got stuck on.
        source: PlayError<JobsError>,
    },
    /// Parallel jobs that can't be run.
    #[error("{case}, seed {seed}")]
    Jobs {
        /// The cell.
        case: String,
        /// The seed.
        seed: u64,
        /// What kept its jobs from being run.
        source: Box<JobsError>,
    },
    /// The system refused.
    #[error("cannot {doing} {}; check the path and the disk, or give another --out", .path.display())]
    Io {
        /// What was tried, as it stands after "cannot".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder holds something else.
    #[error("--out {}: it is not empty and no sweep's folder; give another", .0.display())]
    Foreign(PathBuf),
    /// The folder holds the results of another command.
    #[error(
        "--out {}: it holds the results of another command, {there}; give another folder, or --force \
         to replace them",
        .folder.display()
    )]
    Other {
        /// The folder.
        folder: PathBuf,
        /// What it holds.
        there: String,
    },
    /// A file of a sweep is damaged.
    #[error("{}: {why}; give the folder of a sweep that was left whole", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Parts that don't belong together.
    #[error("{} is a part of another sweep than {}; merge the parts of one", .other.display(), .first.display())]
    Mismatch {
        /// The first part.
        first: PathBuf,
        /// The one that differs.
        other: PathBuf,
    },
    /// Parts are not there.
    #[error(
        "{missing} of {total} runs are in none of the parts, first {first}; give the folders of \
         all shards, all made by this same program"
    )]
    Incomplete {
        /// Runs not found.
        missing: usize,
        /// Runs wanted.
        total: usize,
        /// The first not found.
        first: String,
    },
    /// A live run could not be made.
    #[error(
        "the live run of {case}, seed {seed}, ended with {status}: {why}; see dormouse doctor, or \
         leave out --live"
    )]
    Live {
        /// The cell.
        case: String,
        /// The seed.
        seed: u64,
        /// The exit status of its process.
        status: std::process::ExitStatus,
        /// What it said last.
        why: String,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    BadInput(String),
}

impl SweepError {
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    /// Whether it is the user's input that has to change.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Unschedulable { .. }
            | Self::Foreign(_)
            | Self::Other { .. }
            | Self::Damaged { .. }
            | Self::Mismatch { .. }
            | Self::Incomplete { .. }
            | Self::BadInput(_) => true,
            Self::Jobs { source, .. } => source.is_bad_input(),
            Self::Stuck { .. } | Self::Io { .. } | Self::Live { .. } => false,
        }
    }
}

impl From<crate::experiment::InputError> for SweepError {
    fn from(error: crate::experiment::InputError) -> Self {
        Self::BadInput(error.to_string())
    }
}
