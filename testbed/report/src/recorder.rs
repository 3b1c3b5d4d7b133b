//! What is written of a run in virtual time while it goes: its log, and the tables of its jobs and requests.

mod behind;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dormouse_analysis::jobs::{History, is_of_jobs};
use dormouse_analysis::requests::{Figures, Recorder};
use dormouse_engine::DecisionDigest;
use dormouse_log::{HashedFile, Head};
use dormouse_model::Step;

pub(crate) use self::behind::Behind;
use crate::jobs::{JobsError, JobsOutcome, JobsRecording, refused};
use crate::output::{Header, RunLogWriter, TableFiles};

/// Writes what is written of a run while it goes.
#[derive(Debug)]
pub(crate) struct RunRecorder<'a> {
    folder: PathBuf,
    log: RunLogWriter,
    jobs: Option<JobsRecording<'a>>,
    requests: Option<Recorder<HashedFile>>,
    digest: DecisionDigest,
    files: TableFiles,
}

/// What was written of a run.
#[derive(Debug)]
pub(crate) struct RunRecorded<'a> {
    /// The head of the chain over all lines of its log.
    pub(crate) head: Head,
    /// The digest of all of its decisions.
    pub(crate) digest: String,
    /// What came of its jobs, if it has any.
    pub(crate) jobs: Option<JobsOutcome<'a>>,
    /// What came of its requests, if it has any.
    pub(crate) requests: Option<Figures>,
    /// The BLAKE3 of each table, by the name of its file.
    pub(crate) hashes: BTreeMap<&'static str, String>,
}

impl<'a> RunRecorder<'a> {
    /// Begins the tables in `folder`, beside the log that was begun there.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn begin(
        folder: &Path,
        header: &'a Header,
        log: RunLogWriter,
    ) -> Result<Self, JobsError> {
        let mut files = TableFiles::new(folder);
        let jobs = JobsRecording::begin_in(&mut files, header, History::default())?;
        let requests = requests_of(&mut files, header)?;
        let (folder, digest) = (folder.to_owned(), DecisionDigest::default());
        Ok(Self { folder, log, jobs, requests, digest, files })
    }

    /// The folder that it writes into.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether anything but the log is written of the run.
    pub(crate) const fn has_tables(&self) -> bool {
        self.jobs.is_some() || self.requests.is_some()
    }

    /// Whether it takes in every step, and not only those that [`Self::heeds`] names.
    const fn wants_all(&self) -> bool {
        self.log.takes_steps() || self.requests.is_some()
    }

    /// Whether something is written of a step though not every step is wanted.
    fn heeds(step: &Step) -> bool {
        !step.decisions.is_empty() || is_of_jobs(step)
    }

    /// Takes in a step of the run.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn see(&mut self, step: &Step) -> Result<(), JobsError> {
        self.log.step(step)?;
        step.decisions.iter().for_each(|decision| self.digest.add(step.at, decision));
        if let Some(jobs) = &mut self.jobs {
            jobs.see(step)?;
        }
        if let Some(requests) = &mut self.requests {
            requests.see(step).map_err(refused(&self.folder))?;
        }
        Ok(())
    }

    /// Writes out the log of a run that broke off and can be gone on with.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn break_off(self) -> Result<(), JobsError> {
        self.log.finish()?;
        Ok(())
    }

    /// Ends the files.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn finish(self) -> Result<RunRecorded<'a>, JobsError> {
        let Self { folder, log, jobs, requests, digest, files } = self;
        let (head, digest) = (log.finish()?, digest.hex());
        let jobs = jobs.map(|jobs| jobs.finish(digest.clone())).transpose()?;
        let requests = requests.map(Recorder::finish).transpose().map_err(refused(&folder))?;
        Ok(RunRecorded { head, digest, jobs, requests, hashes: files.hashes() })
    }
}

/// Begins `requests.csv` of a run that has requests.
pub(crate) fn requests_of(
    files: &mut TableFiles,
    header: &Header,
) -> Result<Option<Recorder<HashedFile>>, JobsError> {
    let experiment = &header.experiment;
    if experiment.requests.is_none() {
        return Ok(None);
    }
    let open = |name| files.create(name);
    let begun = Recorder::begin(open, &experiment.whole_setup(), experiment.tenants());
    Ok(Some(begun.map_err(refused(files.folder()))?))
}

#[cfg(test)]
mod tests;
