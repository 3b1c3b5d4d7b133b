//! Why it can't be measured here.

use std::io;
use std::path::PathBuf;

use dormouse_tasks::progress::ProgressError;
use dormouse_tasks::result::ResultError;
use dormouse_worker::{cgroup, process, workspace};

/// Why two tiers can't be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TwoTierError {
    /// Control groups are root's.
    #[error(
        "measuring two tiers needs root, for control groups, and this is user {0}; run it as \
         root; `dormouse doctor` says what else is needed"
    )]
    NoRoot(u32),
    /// The control groups.
    #[error("two tiers can't be measured without control groups; `dormouse doctor` says more")]
    Cgroup(#[from] cgroup::Error),
    /// A place that a container mounts read-only.
    #[error("two tiers can't be measured here")]
    Place(#[from] workspace::Error),
    /// A job's process can't be run.
    #[error("a job to be measured can't be run")]
    Process(#[from] process::Error),
    /// A job's progress can't be followed.
    #[error("a job to be measured can't be followed")]
    Progress(#[from] ProgressError),
    /// A job left no result.
    #[error("a job that was measured left no result")]
    Result(#[from] ResultError),
    /// A job did not do what it should.
    #[error("the {which} job {how}; run it again, or see whether dormouse-task is of this version")]
    Job {
        /// Foreground or background.
        which: &'static str,
        /// The end of the job, in words.
        how: String,
    },
    /// The system refused to do something with a file.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// File that it was to be done with.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
}

impl TwoTierError {
    /// Error for what the system refused to do with a file.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
