//! A session of EC2's API whose steps are in its log before its answers are sent.

use std::path::Path;

use dormouse_analysis::RunRecord;
use dormouse_ec2::{Ec2Session, InstanceAnnouncement};
use dormouse_ec2_server::CloudSession;
use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use dormouse_model::{Event, Step};
use dormouse_report::output::{LogHeader, OutputError, RunLogWriter};
use dormouse_report::run_view::RunResults;
use dormouse_units::Time;

use super::kept_lines::KeptLines;

/// A cloud behind EC2's API, with the log of its run.
#[derive(Debug)]
pub(crate) struct RecordedCloud {
    session: Ec2Session,
    /// The date of the run's beginning, microseconds since 1970.
    begins_us: i64,
    record: CallRecord,
    beside: KeptLines,
}

/// The log and the records that are written while callers use the cloud of a run.
#[derive(Debug)]
pub(crate) struct CallRecord {
    log: RunLogWriter,
    record: RunRecord,
    /// Error after which nothing is written any more; `None`: no error occurred.
    failed: Option<OutputError>,
}

impl RecordedCloud {
    /// Begins the run with this header, and the run's log in this folder.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn begin(header: &LogHeader, folder: &Path) -> Result<Self, OutputError> {
        let log = RunLogWriter::begin(folder, header)?;
        let mut cloud = Self::of_log(header, log, KeptLines::begin(folder)?);
        cloud.keep_steps();
        Ok(cloud)
    }

    /// Repeats the run of a log in order to resume it: makes the calls of the log again, each at its recorded time.
    /// `None`: the repeated calls have other results than the recorded ones.
    ///
    /// # Errors
    ///
    /// The log can't be read.
    pub(crate) fn go_on(header: &LogHeader, folder: &Path) -> Result<Option<Self>, OutputError> {
        let (log, steps) = RunLogWriter::go_on(folder, header)?;
        let mut cloud = Self::of_log(header, log, KeptLines::go_on(folder)?);
        for step in &steps {
            cloud.session.advance_to(step.at);
            cloud.session.repeat(&step.event);
        }
        let made = cloud.session.take_steps();
        if !made.starts_with(&steps) {
            return Ok(None);
        }
        cloud.record.keep(&made);
        Ok(Some(cloud))
    }

    fn of_log(header: &LogHeader, log: RunLogWriter, beside: KeptLines) -> Self {
        let experiment = &header.experiment;
        let config = experiment.ec2.unwrap_or_default();
        let session = Ec2Session::new(experiment.setup.clone(), &experiment.hosts, config);
        let record = CallRecord { log, record: header.record(), failed: None };
        Self { session, begins_us: config.begins_unix_us, record, beside }
    }

    /// Writes the new steps to the log; false if they could not be written.
    fn keep_steps(&mut self) -> bool {
        let steps = self.session.take_steps();
        self.record.keep(&steps)
    }

    /// Ends the run: its instances end at the present time, and are charged until then.
    pub(crate) fn close(mut self) -> CallRecord {
        self.session.close();
        self.keep_steps();
        self.record
    }
}

impl CallRecord {
    /// Writes steps to the log. The steps of a call are durable before the call is answered; all other steps can be
    /// derived from them again.
    fn keep(&mut self, steps: &[Step]) -> bool {
        if self.failed.is_none() && !steps.is_empty() {
            let written = steps.iter().try_for_each(|step| {
                self.record.see(step);
                self.log.step(step)
            });
            let is_called = steps.iter().any(|step| matches!(step.event, Event::Called { .. }));
            self.failed = match written {
                Ok(()) if is_called => self.log.sync().err(),
                Ok(()) => None,
                Err(error) => Some(error),
            };
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

impl CloudSession for RecordedCloud {
    fn call(
        &mut self,
        account: &str,
        region: &str,
        request: &ApiRequest,
    ) -> Result<WireValue, ApiError> {
        let answer = self.session.call(account, region, request);
        if self.keep_steps() {
            answer
        } else {
            let text = "The run's log can't be written: nothing is answered any more.";
            Err(ApiError::new("InternalError", text))
        }
    }

    fn interrupt(&mut self, instance: &str, why: &str) -> bool {
        self.session.interrupt(instance, why) && self.keep_steps()
    }

    fn announced(&self, from: usize) -> Vec<InstanceAnnouncement> {
        self.session.announced(from)
    }

    fn keep_record(&mut self, line: &str) -> bool {
        self.beside.keep(line)
    }

    fn kept_records(&self) -> Vec<String> {
        self.beside.before.clone()
    }

    fn now(&self) -> Time {
        self.session.now()
    }

    fn begins_at(&self) -> i64 {
        self.begins_us
    }

    fn next_event_at(&mut self) -> Option<Time> {
        self.session.next_event_at()
    }

    fn advance_to(&mut self, to: Time) {
        self.session.advance_to(to);
        self.keep_steps();
    }
}
