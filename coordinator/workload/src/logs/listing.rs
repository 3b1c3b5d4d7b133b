//! The jobs of a file that is read as a whole, independent of its format.

use std::io;

use super::header::Header;
use super::job::SwfJob;
use super::problem::LineProblem;
use super::skipped::Skipped;

/// The jobs of a file that is read as a whole, with its header and the counts of skipped lines.
#[derive(Debug, Default)]
pub(super) struct JobListing {
    pub(super) header: Header,
    pub(super) skipped: Skipped,
    /// The jobs or their problems, each with the line number.
    pub(super) jobs: Vec<(u64, Result<SwfJob, LineProblem>)>,
}

/// Reason why a file that is read as a whole can't be used.
#[derive(Debug)]
pub(super) enum UnusableLog {
    Io(io::Error),
    Flaw { what: String, remedy: String },
}

impl From<io::Error> for UnusableLog {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl UnusableLog {
    pub(super) fn unusable_file(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Flaw { what: what.into(), remedy: remedy.into() }
    }
}

impl JobListing {
    /// Sorts the jobs by submission; unreadable ones come first.
    pub(super) fn sort_jobs(&mut self) {
        let key = |(_, job): &(u64, Result<SwfJob, LineProblem>)| {
            job.as_ref().ok().map(|job| (job.submitted, job.micros[0]))
        };
        let mut before = None;
        for job in &self.jobs {
            let at = key(job);
            self.skipped.taken_for.sorted += u64::from(at.is_some() && at < before);
            before = at.or(before);
        }
        self.jobs.sort_by_key(key);
    }
}
