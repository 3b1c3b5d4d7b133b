//! A session of EC2's API whose steps are in its log before its answers are sent.

use std::path::Path;
use std::sync::Arc;

use dormouse_ec2::{Ec2Session, InstanceAnnouncement};
use dormouse_ec2_server::{AwaitedAnswer, CloudSession};
use dormouse_ec2_wire::{ApiError, ApiRequest};
use dormouse_report::output::{LogHeader, OutputError, RunLogWriter};
use dormouse_units::Time;

use super::call_journal::{CallJournal, CallRecord};
use super::kept_lines::KeptLines;

/// A cloud behind EC2's API, with the log of its run.
#[derive(Debug)]
pub(crate) struct RecordedCloud {
    session: Ec2Session,
    /// The date of the run's beginning, microseconds since 1970.
    begins_us: i64,
    journal: Arc<CallJournal>,
    beside: KeptLines,
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
        cloud.journal.queue_steps(made);
        Ok(Some(cloud))
    }

    fn of_log(header: &LogHeader, log: RunLogWriter, beside: KeptLines) -> Self {
        let experiment = &header.experiment;
        let config = experiment.ec2.unwrap_or_default();
        let session = Ec2Session::new(experiment.setup.clone(), &experiment.hosts, config);
        let journal = Arc::new(CallJournal::new(CallRecord::new(header, log)));
        Self { session, begins_us: config.begins_unix_us, journal, beside }
    }

    /// Hands the new steps to the journal; returns the number that [`CallJournal::make_durable`] wants for all that has happened.
    fn keep_steps(&mut self) -> u64 {
        let steps = self.session.take_steps();
        self.journal.queue_steps(steps)
    }

    /// Ends the run: its instances end at the present time, and are charged until then. `None` only if it was ended before.
    pub(crate) fn close(mut self) -> Option<CallRecord> {
        self.session.close();
        self.keep_steps();
        self.journal.take_record()
    }
}

impl CloudSession for RecordedCloud {
    fn begin_call(&mut self, account: &str, region: &str, request: &ApiRequest) -> AwaitedAnswer {
        let answer = self.session.call(account, region, request);
        // What a call reads may be of a call that is not durable yet.
        let (journal, until) = (Arc::clone(&self.journal), self.keep_steps());
        AwaitedAnswer::new(move || {
            if journal.make_durable(until) {
                return answer;
            }
            let text = "The run's log can't be written: nothing is answered any more.";
            Err(ApiError::new("InternalError", text))
        })
    }

    fn interrupt(&mut self, instance: &str, why: &str) -> bool {
        let done = self.session.interrupt(instance, why);
        let until = self.keep_steps();
        done && self.journal.make_durable(until)
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

#[cfg(test)]
mod tests {
    use dormouse_analysis::RunMode;
    use dormouse_ec2_wire::{ServiceModel, read_request};
    use dormouse_experiment::open_cloud;

    use super::*;

    #[test]
    fn calls_and_interruptions_are_in_the_log_when_they_are_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let experiment = open_cloud("j60", &[]).expect("it is built in").experiment;
        let header = LogHeader::new(RunMode::Virtual, "dormouse ec2 j60".to_owned(), experiment);
        let mut cloud = RecordedCloud::begin(&header, folder.path()).expect("it can");
        let logged = |what: &str| {
            let path = folder.path().join(dormouse_log::FILE);
            std::fs::read_to_string(path).expect("a text").contains(what)
        };
        let body = "Action=RunInstances&ImageId=ami-12345678&InstanceType=c3.large&MinCount=1&MaxCount=1\
                    &InstanceMarketOptions.MarketType=spot";
        let model = ServiceModel::ec2().expect("it is built in");
        let request = read_request(&model, body).expect("it is right");
        let answer = cloud.call("AKIA", "us-east-1", &request).expect("it is launched");
        assert!(logged("RunInstances"));
        let id = answer.list("Instances")[0].text("InstanceId").expect("it has an id").to_owned();
        cloud.advance_to(Time::from_secs(600));
        assert!(cloud.interrupt(&id, "to see what comes"));
        assert!(logged("to see what comes"));
        assert!(!cloud.interrupt("i-0123456789abcdef0", "to see nothing"));
        // Two calls under way, and the first is not waited for: one sync makes both durable.
        let tagged = |value: &str| {
            let body =
                format!("Action=CreateTags&ResourceId.1={id}&Tag.1.Key=k&Tag.1.Value={value}");
            read_request(&model, &body).expect("it is right")
        };
        let first = cloud.begin_call("AKIA", "us-east-1", &tagged("tag-one"));
        let second = cloud.begin_call("AKIA", "us-east-1", &tagged("tag-two"));
        assert!(!logged("tag-one"));
        second.wait().expect("it is right");
        assert!(logged("tag-one") && logged("tag-two"));
        first.wait().expect("it is right");
        cloud.close().expect("it ends once").finish(&header).expect("its log is written");
    }
}
