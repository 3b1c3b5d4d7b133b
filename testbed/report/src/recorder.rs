//! Writer of a virtual run's log, and of the tables of its jobs and requests, during the run.

mod behind;

use std::path::{Path, PathBuf};

use dormouse_analysis::jobs::{JobsOfWindow, is_of_jobs};
use dormouse_engine::DecisionDigest;
use dormouse_log::Head;
use dormouse_model::Step;

pub(crate) use self::behind::RecorderThread;
use crate::jobs::JobsError;
use crate::output::{LogHeader, RunLogWriter};
use crate::tables::{RunTables, WrittenTables};

/// Writes the log and tables of a run during the run. Call [`Self::see`] for each step, then
/// [`Self::finish`].
#[derive(Debug)]
pub(crate) struct RunRecorder<'a> {
    folder: PathBuf,
    log: RunLogWriter,
    tables: RunTables<'a>,
    digest: DecisionDigest,
}

/// Results of recording a run.
#[derive(Debug)]
pub(crate) struct RunRecorded<'a> {
    /// Head of the hash chain over all lines of the run's log.
    pub(crate) head: Head,
    /// Digest of all decisions, in hexadecimal.
    pub(crate) digest: String,
    /// Results of the run's tables.
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
        header: &'a LogHeader,
        log: RunLogWriter,
    ) -> Result<Self, JobsError> {
        let tables = RunTables::begin(folder, header, JobsOfWindow::default())?;
        let (folder, digest) = (folder.to_owned(), DecisionDigest::default());
        Ok(Self { folder, log, tables, digest })
    }

    /// Folder that the recorder writes into.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether tables are written beside the log.
    pub(crate) const fn has_tables(&self) -> bool {
        self.tables.are_any()
    }

    /// Whether the log or the tables need every step, not only those that [`Self::is_needed`] names.
    const fn wants_all(&self) -> bool {
        self.log.takes_steps() || self.tables.want_all()
    }

    /// Whether a step must be recorded even if the log and the tables don't need every step.
    fn is_needed(step: &Step) -> bool {
        !step.decisions.is_empty() || is_of_jobs(step)
    }

    /// Writes a step.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn see(&mut self, step: &Step) -> Result<(), JobsError> {
        self.log.step(step)?;
        step.decisions.iter().for_each(|decision| self.digest.add_decision(step.at, decision));
        self.tables.see(step)
    }

    /// Ends the log of a run that stopped early and can be resumed.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn break_off(self) -> Result<(), JobsError> {
        self.log.finish()?;
        Ok(())
    }

    /// Ends all files.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn finish(self) -> Result<RunRecorded<'a>, JobsError> {
        let (head, digest) = (self.log.finish()?, self.digest.to_hex());
        let tables = self.tables.finish(digest.clone())?;
        Ok(RunRecorded { head, digest, tables })
    }
}

#[cfg(test)]
mod tests;
