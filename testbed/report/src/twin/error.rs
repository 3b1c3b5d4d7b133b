//! Errors of comparing a run with its twin.

use std::path::PathBuf;

use dormouse_policies::PlanError;

use crate::jobs::JobsError;
use crate::output::OutputError;

/// Reason for which a run can't be compared with a twin.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// The run's log can't be read.
    #[error(transparent)]
    Log(#[from] OutputError),
    /// The run's jobs can't be read or run again.
    #[error("{}", dormouse_experiment::chain(.0))]
    Jobs(#[from] JobsError),
    /// No scheduler can be made from the header of the run's log.
    #[error(
        "{}: {source}; give the folder of a run", .path.join(dormouse_log::FILE).display()
    )]
    Scheduler {
        /// Folder of the run.
        path: PathBuf,
        /// The reason why no scheduler can be made.
        source: PlanError,
    },
    /// The log ends before anything was decided.
    #[error("{}: the run ended before it began; there is nothing to compare", .0.display())]
    NeverBegan(PathBuf),
    /// Several tenants share the run.
    #[error(
        "{}: several tenants share this run, and only a run of one tenant has a twin; use `dormouse \
         check` or `dormouse replay`", .0.display()
    )]
    Shared(PathBuf),
    /// The policies have changed since: a twin would differ for that reason alone.
    #[error(
        "{}: this version, {}, decides step {step} differently; the run was made by version \
         {made_by}: use that one", .path.display(), env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// Folder of the run.
        path: PathBuf,
        /// Number of the first step that this version of Dormouse decides differently.
        step: u64,
        /// Program version that made the run.
        made_by: String,
    },
    /// The run's steps were left out of its log.
    #[error(
        "{}: this virtual run had too many jobs to keep its steps, and a virtual run is its own \
         twin; give the folder of a live run", .0.display()
    )]
    NoSteps(PathBuf),
}

impl TwinError {
    /// Whether the user has to change the input.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Log(error) => error.is_bad_input(),
            Self::Jobs(error) => error.is_bad_input(),
            _ => true,
        }
    }
}
