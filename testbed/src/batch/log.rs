//! `events.jsonl` of a batch run: a header, then one step a line.

use std::path::Path;

use dormouse_engine::{Event, Step};
use dormouse_log::{FORMAT, LogWriter};
use serde::{Deserialize, Serialize};

use crate::experiment::BatchExperiment;
use crate::experiment::Kind;
use crate::output::{Mode, OutputError, begin_log, open_log, read_steps};

/// The log of a run in virtual time holds so many jobs at most: it can be made again from its
/// header, and a trace of millions would leave gigabytes.
pub const MOST_LOGGED: u64 = 50_000;

/// The first line: all that is needed to read the log and to make the run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchHeader {
    /// What kind of run it is the log of.
    pub kind: Kind,
    /// The version of the format.
    pub format: u32,
    /// The version of the program.
    pub dormouse: String,
    /// How it was run.
    pub mode: Mode,
    /// The command that makes the same run again.
    pub command: String,
    /// Processors of the machine.
    pub machine: u32,
    /// The experiment, with everything resolved.
    pub experiment: BatchExperiment,
    /// What is not in the log, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl BatchHeader {
    /// The header of a run made by this version.
    #[must_use]
    pub fn new(mode: Mode, command: String, machine: u32, experiment: BatchExperiment) -> Self {
        let dormouse = env!("CARGO_PKG_VERSION").to_owned();
        let (kind, format, left_out) = (Kind::Batch, FORMAT, None);
        Self { kind, format, dormouse, mode, command, machine, experiment, left_out }
    }

    /// Reads the header of the log in a run's folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or it is damaged.
    pub fn read(folder: &Path) -> Result<Self, OutputError> {
        Ok(open_log(folder)?.header_as()?)
    }
}

/// A log being written.
#[derive(Debug)]
pub struct BatchLogWriter {
    log: LogWriter,
    header: BatchHeader,
    submitted: u64,
}

impl BatchLogWriter {
    /// Begins a log in `folder`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &BatchHeader) -> Result<Self, OutputError> {
        Ok(Self { log: begin_log(folder, header)?, header: header.clone(), submitted: 0 })
    }

    /// Adds a step, unless there are too many; with the first that is one too many, all that
    /// were added are taken back.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, step: &Step) -> Result<(), OutputError> {
        if self.header.left_out.is_some() {
            return Ok(());
        }
        self.submitted += u64::from(matches!(step.event, Event::Submitted { .. }));
        if self.submitted > MOST_LOGGED {
            return self.leave_out();
        }
        Ok(self.log.line(step)?)
    }

    /// Leaves all steps out if so many jobs are to come that there will be too many.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn expect(&mut self, jobs: u64) -> Result<(), OutputError> {
        if jobs > MOST_LOGGED { self.leave_out() } else { Ok(()) }
    }

    fn leave_out(&mut self) -> Result<(), OutputError> {
        self.header.left_out = Some(format!(
            "the steps: more than {MOST_LOGGED} jobs; replay, explain and check make the run again"
        ));
        self.log.cut(0)?;
        Ok(self.log.line(&self.header)?)
    }

    /// Writes out what is left.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(self) -> Result<(), OutputError> {
        Ok(self.log.finish()?)
    }
}

/// A log that was read.
#[derive(Debug)]
pub struct BatchLog {
    /// Its first line.
    pub header: BatchHeader,
    /// Its steps; `None` if they were too many to be kept.
    pub steps: Option<Vec<Step>>,
    /// The last line was torn, as a kill leaves it, and is left out.
    pub torn: bool,
}

impl BatchLog {
    /// Reads the log of a run's folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or a line before the last is damaged.
    pub fn read(folder: &Path) -> Result<Self, OutputError> {
        let mut log = open_log(folder)?;
        let header: BatchHeader = log.header_as()?;
        if header.left_out.is_some() {
            return Ok(Self { header, steps: None, torn: false });
        }
        let steps = read_steps(&mut log)?;
        Ok(Self { header, steps: Some(steps), torn: log.torn() })
    }
}
