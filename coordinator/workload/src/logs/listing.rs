//! The jobs of a file that is read as a whole, by whichever reader of its format.

use std::io;

use super::header::Header;
use super::job::SwfJob;
use super::problem::Problem;
use super::skipped::Skipped;

/// The jobs of a file that is not read line by line.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) header: Header,
    pub(super) skipped: Skipped,
    /// The jobs, each with its line.
    pub(super) jobs: Vec<(u64, Result<SwfJob, Problem>)>,
}

/// Why a file that is not read line by line can't be used.
#[derive(Debug)]
pub(super) enum Unusable {
    Io(io::Error),
    Flaw { what: String, remedy: String },
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Unusable {
    pub(super) fn flaw(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Flaw { what: what.into(), remedy: remedy.into() }
    }
}

impl Listing {
    /// Puts the jobs into the order of submission; what can't be read comes first.
    pub(super) fn sort(&mut self) {
        let key = |(_, job): &(u64, Result<SwfJob, Problem>)| {
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
