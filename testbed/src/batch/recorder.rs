//! Writes down a batch run while it goes: every job as it ends, every step, every decision's
//! digest, and what reports are made of. Memory does not grow with the trace.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use std::collections::BTreeMap;

use dormouse_batch::{Decision, Event, JobId, Observer, Record};
use dormouse_coordinator::BatchStep;
use dormouse_measy::JobsCsv;
use dormouse_units::{Span, Time};

use super::digest::Digest;
use super::figures::Figures;
use super::history::History;
use super::log::{BatchHeader, BatchLogWriter, MOST_LOGGED};
use super::schedule::Schedule;
use super::{BatchError, BatchOutcome};
use crate::output::{Mode, OutputError};

/// An observer that leaves `jobs.csv` and `schedule.swf`, and of a run in virtual time
/// `events.jsonl`: that of a live run is written before anything is done about it.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    csv: JobsCsv<BufWriter<File>>,
    swf: Schedule,
    log: Option<BatchLogWriter>,
    step: BatchStep,
    submitted: u64,
    digest: Digest,
    figures: Figures,
    history: History,
    /// Of a live run, what each job was promised.
    promises: BTreeMap<JobId, Span>,
}

impl Recorder {
    /// Begins the files in `folder`; `expected`: how many jobs there will be, if that is known.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(
        folder: &Path,
        header: &BatchHeader,
        expected: Option<u64>,
    ) -> Result<Self, OutputError> {
        let create = |name: &str| {
            let path = folder.join(name);
            File::create(&path).map_err(|error| OutputError::io("write", &path, error))
        };
        let refused =
            |name: &'static str| move |error| OutputError::io("write", &folder.join(name), error);
        let name = &header.experiment.name;
        let csv = BufWriter::with_capacity(1 << 16, create("jobs.csv")?);
        let csv = match header.mode {
            Mode::Virtual => JobsCsv::new(csv, name),
            Mode::Live => JobsCsv::with_promises(csv, name),
        };
        let csv = csv.map_err(refused("jobs.csv"))?;
        let swf = Schedule::new(create("schedule.swf")?, header.machine, name)
            .map_err(refused("schedule.swf"))?;
        let mut log = match header.mode {
            Mode::Virtual => Some(BatchLogWriter::begin(folder, header)?),
            Mode::Live => None,
        };
        if let Some(log) = log.as_mut().filter(|_| expected.is_some_and(|n| n > MOST_LOGGED)) {
            log.leave_out()?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            csv,
            swf,
            log,
            step: BatchStep::default(),
            submitted: 0,
            digest: Digest::default(),
            figures: Figures::default(),
            history: History::default(),
            promises: BTreeMap::new(),
        })
    }

    /// What jobs are promised, from their first start to their end; for those that end from now
    /// on.
    pub fn promise(&mut self, promises: impl Iterator<Item = (JobId, Span)>) {
        self.promises = promises.collect();
    }

    /// Writes the step that was heard and decided last.
    fn end_step(&mut self) -> Result<(), OutputError> {
        let step = std::mem::take(&mut self.step);
        if step.events.is_empty() && step.decisions.is_empty() {
            return Ok(());
        }
        self.log.as_mut().map_or(Ok(()), |log| log.step(&step))
    }

    /// Whether steps are still wanted.
    fn keeps(&self) -> bool {
        self.log.as_ref().is_some_and(BatchLogWriter::keeps)
    }

    /// Ends the files; what reports are made of.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(mut self, header: &BatchHeader) -> Result<BatchOutcome<'_>, OutputError> {
        self.end_step()?;
        let Self { folder, csv, swf, log, digest, figures, history, .. } = self;
        let refused = |name: &str, error| OutputError::io("write", &folder.join(name), error);
        csv.finish().map_err(|error| refused("jobs.csv", error))?;
        swf.finish().map_err(|error| refused("schedule.swf", error))?;
        log.map_or(Ok(()), BatchLogWriter::finish)?;
        Ok(BatchOutcome::new(header, figures, history, digest.hex()))
    }

    fn refused(&self, name: &str, error: io::Error) -> BatchError {
        OutputError::io("write", &self.folder.join(name), error).into()
    }
}

impl Observer for Recorder {
    type Error = BatchError;

    fn heard(&mut self, now: Time, events: &[Event]) -> Result<(), BatchError> {
        self.end_step()?;
        self.history.heard(now, events);
        let submitted = events.iter().filter(|event| matches!(event, Event::Submitted(_)));
        self.submitted += submitted.count() as u64;
        if let Some(log) = self.log.as_mut().filter(|_| self.submitted > MOST_LOGGED) {
            log.leave_out()?;
        }
        self.step.at = now;
        if self.keeps() {
            self.step.events.extend_from_slice(events);
        }
        Ok(())
    }

    fn decided(&mut self, now: Time, _: u64, decision: &Decision) -> Result<(), BatchError> {
        self.digest.add(now, decision);
        self.history.decided(now, decision);
        if self.keeps() {
            self.step.decisions.push(decision.clone());
        }
        Ok(())
    }

    fn ended(&mut self, record: Record) -> Result<(), BatchError> {
        self.figures.add(&record);
        let promised = self.promises.get(&record.id).copied();
        self.csv
            .write_promised(&record, promised)
            .map_err(|error| self.refused("jobs.csv", error))?;
        self.swf.add(&record).map_err(|error| self.refused("schedule.swf", error))
    }
}
