//! Errors of the two-tier measurement.

use std::io;
use std::path::PathBuf;

use dormouse_tasks::progress::ProgressError;
use dormouse_tasks::result::ResultError;
use dormouse_worker::{cgroup, process, workspace};

/// Reason why two tiers can't be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TwoTierError {
    /// The process is not root, which control groups need.
    #[error(
        "measuring two tiers needs root, for control groups, and this is user {0}; run it as \
         root; `dormouse doctor` says what else is needed"
    )]
    NoRoot(u32),
    /// An operation on control groups failed.
    #[error("two tiers can't be measured without control groups; `dormouse doctor` says more")]
    Cgroup(#[from] cgroup::CgroupError),
    /// The container mounts a place read-only that the measurement has to write to.
    #[error("two tiers can't be measured here")]
    Place(#[from] workspace::WorkspaceError),
    /// A job's process can't be run.
    #[error("a job to be measured can't be run")]
    Process(#[from] process::ProcessError),
    /// A job's progress can't be followed.
    #[error("a job to be measured can't be followed")]
    Progress(#[from] ProgressError),
    /// A job left no result.
    #[error("a measured job left no result")]
    Result(#[from] ResultError),
    /// A job ended in another way than it should.
    #[error(
        "the {which} job {how}; run it again, or check that dormouse-task is of the same version"
    )]
    Job {
        /// The job that ended: `foreground` or `background`.
        which: &'static str,
        /// Description of the job's end.
        how: String,
    },
    /// The system refused a file operation.
    #[error("can't {what} {}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl TwoTierError {
    /// Error for a refused file operation.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
