//! Parallel jobs submitted from outside during a run: requests, accepted jobs, and whether more may be submitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_model::Submission;
use dormouse_proto::v1;
use dormouse_units::{Bytes, Ppm, Span, Time, Usage};
use ractor::RpcReplyPort;

use crate::log::journal::OnceDurable;

/// Longest key of a job, in bytes, as it goes into the log.
const LONGEST_KEY: usize = 255;
/// Longest run time and estimate of a job, emulated: three years.
const LONGEST: u64 = 100_000_000_000_000;
/// Smallest usage of a processor, as in experiment files.
const LEAST_USAGE: Ppm = Ppm::new(10_000);

/// A job submitted from outside, checked as far as that is possible without the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobSubmission {
    pub(crate) key: Arc<str>,
    processes: u32,
    runtime: Span,
    estimate: Span,
    usage: Usage,
    memory: Bytes,
}

impl JobSubmission {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// What is wrong with the request.
    pub(crate) fn from_request(request: v1::SubmitRequest) -> Result<Self, String> {
        let v1::SubmitRequest { key, processes, usage_ppm, .. } = request;
        let (runtime_us, estimate_us) = (request.emulated_runtime_us, request.emulated_estimate_us);
        if key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control) {
            return Err(format!(
                "a key has 1 to {LONGEST_KEY} bytes and no control characters: it names the job, so \
                 that it is accepted once"
            ));
        }
        if processes == 0 {
            return Err("it wants no processor: give it at least one".to_owned());
        }
        let estimate_us = if estimate_us == 0 { runtime_us } else { estimate_us };
        for (what, us) in [("run time", runtime_us), ("estimate", estimate_us)] {
            if !(1..=LONGEST).contains(&us) {
                let most = LONGEST / 1_000_000;
                return Err(format!("a {what} of {us} µs is out of range: give 1 µs to {most} s"));
            }
        }
        let usage = match usage_ppm[..] {
            [] => Usage::FULL,
            [one] => Usage::Uniform(Ppm::new(one)),
            _ if usage_ppm.len() == processes as usize => {
                Usage::each_process(usage_ppm.iter().copied().map(Ppm::new).collect())
            }
            _ => {
                let n = usage_ppm.len();
                return Err(format!(
                    "it has {processes} processes but the usage of {n}: give one for all, or one for each"
                ));
            }
        };
        if let Some(no) = usage_ppm.iter().find(|it| !(LEAST_USAGE.get()..=1_000_000).contains(*it))
        {
            let no = Ppm::new(*no);
            return Err(format!("a usage of {no} of a processor is out of range: give 0.01 to 1"));
        }
        let (runtime, estimate) = (Span::from_micros(runtime_us), Span::from_micros(estimate_us));
        let memory = Bytes::new(request.memory_bytes_each);
        Ok(Self { key: key.into(), processes, runtime, estimate, usage, memory })
    }

    /// Makes the job's submission at this time under this number.
    pub(crate) fn make_submission(&self, number: u64, submitted: Time) -> Submission {
        Submission {
            number,
            submitted,
            processes: self.processes,
            runtime: self.runtime,
            estimate: self.estimate,
            usage: self.usage.clone(),
            memory: self.memory,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        }
    }
}

/// Intake of a run's jobs: counts those of its workload and those from outside. A job that is submitted again under
/// the same key is recognised.
#[derive(Debug, Default)]
pub(crate) struct JobIntake {
    /// True if jobs may come from outside.
    pub(crate) is_open: bool,
    /// Number of submitted jobs of the workload.
    pub(crate) own: usize,
    /// Accepted jobs from outside by key.
    taken: BTreeMap<Arc<str>, Arc<Submission>>,
}

impl JobIntake {
    /// Makes the intake of a run that begins; `is_open`: jobs may be submitted from outside.
    pub(crate) fn new(is_open: bool) -> Self {
        Self { is_open, ..Self::default() }
    }

    /// Records a submitted job; `key` is `None` for a job of the workload.
    pub(crate) fn note_submitted(&mut self, key: Option<&Arc<str>>, job: &Arc<Submission>) {
        match key {
            Some(key) => drop(self.taken.insert(Arc::clone(key), Arc::clone(job))),
            None => self.own += 1,
        }
    }

    /// Returns the number of jobs from outside.
    pub(crate) fn outside_count(&self) -> usize {
        self.taken.len()
    }

    /// Returns the answer to a job that was accepted before under the same key.
    ///
    /// # Errors
    ///
    /// Another job has that key.
    pub(crate) fn find_known(
        &self,
        asked: &JobSubmission,
    ) -> Result<Option<v1::SubmitReply>, String> {
        let Some(job) = self.taken.get(&asked.key) else { return Ok(None) };
        if asked.make_submission(job.number, job.submitted) != **job {
            let (key, number) = (&asked.key, job.number);
            return Err(format!(
                "'{key}' is the key of job {number}, a different job: give another --key"
            ));
        }
        Ok(Some(submit_reply(job, true)))
    }
}

/// Makes the answer to an accepted job; `known`: the job was accepted before under the same key.
pub(crate) fn submit_reply(job: &Submission, known: bool) -> v1::SubmitReply {
    v1::SubmitReply { number: job.number, emulated_at_us: job.submitted.as_micros(), known }
}

/// An answer that is sent once the steps that it is about are durable.
#[derive(Debug)]
pub(crate) struct DurableAnswer<T: Send + Sync + std::fmt::Debug + 'static> {
    pub(crate) to: RpcReplyPort<Result<T, String>>,
    pub(crate) say: T,
}

impl<T: Send + Sync + std::fmt::Debug + 'static> OnceDurable for DurableAnswer<T> {
    fn on_durable(self: Box<Self>) {
        // Whoever has left asks again.
        let _ = self.to.send(Ok(self.say));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> v1::SubmitRequest {
        v1::SubmitRequest {
            memory_bytes_each: 0,
            key: "k".to_owned(),
            processes: 2,
            emulated_runtime_us: 5,
            emulated_estimate_us: 0,
            usage_ppm: Vec::new(),
        }
    }

    #[test]
    fn what_can_be_no_job_is_refused_with_what_is_wrong() {
        for (change, word) in [
            ((|it| it.key.clear()) as fn(&mut v1::SubmitRequest), "1 to 255 bytes"),
            (|it| it.key = "x".repeat(256), "1 to 255 bytes"),
            (|it| it.key = "a\nb".to_owned(), "control characters"),
            (|it| it.processes = 0, "no processor"),
            (|it| it.emulated_runtime_us = 0, "run time of 0"),
            (|it| it.emulated_runtime_us = u64::MAX, "run time of"),
            (|it| it.emulated_estimate_us = u64::MAX, "estimate of"),
            (|it| it.usage_ppm = vec![500_000; 3], "the usage of 3"),
            (|it| it.usage_ppm = vec![0], "usage of"),
            (|it| it.usage_ppm = vec![1_000_001], "usage of"),
            (|it| it.usage_ppm = vec![500_000, 9_999], "usage of"),
        ] {
            let mut request = request();
            change(&mut request);
            let no = JobSubmission::from_request(request).expect_err(word);
            assert!(no.contains(word), "{no}");
        }
    }

    #[test]
    fn one_key_is_one_job() {
        let mut door = JobIntake::new(true);
        let asked = JobSubmission::from_request(request()).expect("a job");
        assert_eq!(door.find_known(&asked), Ok(None));
        let job = Arc::new(asked.make_submission(7, Time::from_secs(3)));
        assert_eq!(job.estimate, job.runtime);
        door.note_submitted(Some(&asked.key), &job);
        door.note_submitted(None, &job);
        assert_eq!((door.own, door.outside_count()), (1, 1));
        let known = door.find_known(&asked).expect("the same").expect("it was taken");
        assert_eq!((known.number, known.emulated_at_us, known.known), (7, 3_000_000, true));
        let other = JobSubmission::from_request(v1::SubmitRequest { processes: 1, ..request() })
            .expect("a job");
        let no = door.find_known(&other).expect_err("another job");
        assert!(no.contains("'k' is the key of job 7"), "{no}");
    }
}
