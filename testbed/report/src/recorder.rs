//! What is written of a run in virtual time while it goes: its log, and the tables of its jobs and requests.

mod behind;

use std::path::{Path, PathBuf};

use dormouse_analysis::jobs::{JobsOfWindow, is_of_jobs};
use dormouse_engine::DecisionDigest;
use dormouse_log::Head;
use dormouse_model::Step;

pub(crate) use self::behind::Behind;
use crate::jobs::JobsError;
use crate::output::{Header, RunLogWriter};
use crate::tables::{Tables, WrittenTables};

/// Writes what is written of a run while it goes.
#[derive(Debug)]
pub(crate) struct RunRecorder<'a> {
    folder: PathBuf,
    log: RunLogWriter,
    tables: Tables<'a>,
    digest: DecisionDigest,
}

/// What was written of a run.
#[derive(Debug)]
pub(crate) struct RunRecorded<'a> {
    /// The head of the chain over all lines of its log.
    pub(crate) head: Head,
    /// The digest of all of its decisions.
    pub(crate) digest: String,
    /// What came of its tables.
    pub(crate) tables: WrittenTables<'a>,
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
        let tables = Tables::begin(folder, header, JobsOfWindow::default())?;
        let (folder, digest) = (folder.to_owned(), DecisionDigest::default());
        Ok(Self { folder, log, tables, digest })
    }

    /// The folder that it writes into.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether anything but the log is written of the run.
    pub(crate) const fn has_tables(&self) -> bool {
        self.tables.are_any()
    }

    /// Whether it takes in every step, and not only those that [`Self::heeds`] names.
    const fn wants_all(&self) -> bool {
        self.log.takes_steps() || self.tables.want_all()
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
        self.tables.see(step)
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
        let (head, digest) = (self.log.finish()?, self.digest.hex());
        let tables = self.tables.finish(digest.clone())?;
        Ok(RunRecorded { head, digest, tables })
    }
}

#[cfg(test)]
mod tests;
