//! The log of a run that callers share: the calls that come while the disk is busy become durable with one sync.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dormouse_analysis::RunRecord;
use dormouse_model::{Event, Step};
use dormouse_report::output::{LogHeader, OutputError, RunLogWriter};
use dormouse_report::run_view::RunResults;

/// Most steps that wait in memory for the next call: they follow from the calls before them.
const MAX_QUEUED: usize = 1_024;

/// The log and the record of a run. One thread writes, while others add steps.
#[derive(Debug)]
pub(crate) struct CallJournal {
    queue: Mutex<StepQueue>,
    /// Number of changes from outside that are durable.
    durable: AtomicU64,
    /// `None` once the run is over.
    record: Mutex<Option<CallRecord>>,
}

/// Steps that are not in the log yet.
#[derive(Debug, Default)]
struct StepQueue {
    steps: Vec<Step>,
    /// Number of the run's changes from outside: calls that change something, and interruptions.
    changes: u64,
}

impl CallJournal {
    pub(crate) fn new(record: CallRecord) -> Self {
        let record = Mutex::new(Some(record));
        Self { queue: Mutex::default(), durable: AtomicU64::new(0), record }
    }

    fn locked_queue(&self) -> MutexGuard<'_, StepQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked_record(&self) -> MutexGuard<'_, Option<CallRecord>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds steps, in the order of the run; returns the number of changes from outside until now.
    pub(crate) fn queue_steps(&self, steps: Vec<Step>) -> u64 {
        let from_outside =
            |step: &&Step| matches!(step.event, Event::Called { .. } | Event::Interrupt { .. });
        let (changes, count) = {
            let mut queue = self.locked_queue();
            queue.changes += steps.iter().filter(from_outside).count() as u64;
            queue.steps.extend(steps);
            (queue.changes, queue.steps.len())
        };
        if count > MAX_QUEUED
            && let Some(record) = &mut *self.locked_record()
        {
            record.write(&std::mem::take(&mut self.locked_queue().steps));
        }
        changes
    }

    /// Waits until this number of changes from outside is durable, with all steps before them. False: the log can't be written.
    pub(crate) fn make_durable(&self, changes: u64) -> bool {
        if self.durable.load(Ordering::Acquire) >= changes {
            return true;
        }
        let mut record = self.locked_record();
        // Whoever wrote while this call waited has written its steps, too.
        let is_durable = || self.durable.load(Ordering::Acquire) >= changes;
        match &mut *record {
            Some(record) if !is_durable() => self.sync(record),
            _ => is_durable(),
        }
    }

    fn sync(&self, record: &mut CallRecord) -> bool {
        let (steps, changes) = {
            let mut queue = self.locked_queue();
            (std::mem::take(&mut queue.steps), queue.changes)
        };
        record.write(&steps);
        let is_synced = record.sync();
        if is_synced {
            self.durable.store(changes, Ordering::Release);
        }
        is_synced
    }

    /// Ends the journal with all of its steps; `None` if it has ended before.
    pub(crate) fn take_record(&self) -> Option<CallRecord> {
        let mut record = self.locked_record();
        // Its failure is kept, and returned by `finish`.
        let _ = self.sync(record.as_mut()?);
        record.take()
    }
}

/// The log and the records that are written while callers use the cloud of a run.
#[derive(Debug)]
pub(crate) struct CallRecord {
    log: RunLogWriter,
    record: RunRecord,
    /// Error after which nothing is written any more; `None`: no error occurred.
    failed: Option<OutputError>,
}

impl CallRecord {
    pub(crate) fn new(header: &LogHeader, log: RunLogWriter) -> Self {
        Self { log, record: header.record(), failed: None }
    }

    /// Writes steps to the log, unless an earlier write has failed.
    fn write(&mut self, steps: &[Step]) {
        if self.failed.is_none() {
            let written = steps.iter().try_for_each(|step| {
                self.record.see(step);
                self.log.step(step)
            });
            self.failed = written.err();
        }
    }

    /// Makes durable what was written; false if that, or an earlier write, has failed.
    fn sync(&mut self) -> bool {
        if self.failed.is_none() {
            self.failed = self.log.sync().err();
        }
        self.failed.is_none()
    }

    /// Ends the log, and returns the results of the run.
    ///
    /// # Errors
    ///
    /// The log could not be written.
    pub(crate) fn finish(self, header: &LogHeader) -> Result<RunResults<'_>, OutputError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let log = Some(self.log.finish()?);
        Ok(RunResults { record: Some(self.record), log, ..RunResults::new(header) })
    }
}
