//! A log as a workload: jobs that can be submitted, in order.

use std::io::{self, Read};
use std::path::Path;

use dormouse_model::Submission;
use dormouse_units::{Bytes, Span, Time, Usage};

use super::job::SwfJob;
use super::reader::{Problem, Skipped, SwfError, SwfReader};
use super::rules::{JobSize, LogRules, NoEstimate, Numbers, RanOver, Repeated};

/// Longest span that is taken for a time, in seconds (31,000 years): sums stay in range.
const LAST: i64 = 1_000_000_000_000;

/// The jobs of a log that ran, as submissions to a machine.
///
/// Size: processors requested, else those allocated, or the other way round. Estimate: time
/// requested, else the run time. [`LogRules`] say what becomes of oddities. A job whose run time or
/// size is not known (−1, or size 0) never ran: it is counted and left out in any case, since
/// archives keep cancelled jobs in their logs. Submission times are the log's; CPU usage is a whole
/// processor until assigned. Memory: that requested for each processor, where the machine's memory
/// is known.
#[derive(Debug)]
pub struct Trace {
    reader: SwfReader,
    machine: u32,
    /// Memory that a process may have on a processor, if it is known.
    memory: Option<Bytes>,
    last: i64,
    numbers: Numbers,
    /// Whether a job has been given.
    has_jobs: bool,
}

impl Trace {
    /// A log for a machine of `machine` processors, or as many as its header says; `file` is the
    /// result of opening it at `path`.
    ///
    /// # Errors
    ///
    /// The file can't be read, or the size of the machine is unknown.
    pub fn of<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        machine: Option<u32>,
        rules: impl Into<LogRules>,
    ) -> Result<Self, SwfError> {
        Self::new(SwfReader::of(path, file, rules)?, machine)
    }

    /// The workload that `reader` reads.
    ///
    /// # Errors
    ///
    /// The size of the machine is unknown.
    pub fn new(reader: SwfReader, machine: Option<u32>) -> Result<Self, SwfError> {
        let no_machine = || SwfError::NoMachine { path: reader.path().to_owned() };
        let machine = machine.or_else(|| reader.header().processors()).ok_or_else(no_machine)?;
        let numbers = Numbers::default();
        Ok(Self { reader, machine, memory: None, last: 0, numbers, has_jobs: false })
    }

    /// This trace for a machine with `memory` for a process on a processor; `None`: that is
    /// unknown, and jobs ask for none.
    #[must_use]
    pub fn with_memory(self, memory: Option<Bytes>) -> Self {
        Self { memory, ..self }
    }

    /// Number of processors of the machine.
    #[must_use]
    pub const fn machine(&self) -> u32 {
        self.machine
    }

    /// Jobs that were left out so far, by reason.
    #[must_use]
    pub const fn skipped(&self) -> &Skipped {
        self.reader.skipped()
    }

    /// The reader of the log.
    #[must_use]
    pub const fn reader(&self) -> &SwfReader {
        &self.reader
    }

    /// The submission that a job makes; `None` if it never ran.
    fn submission(&mut self, job: &SwfJob) -> Result<Option<Submission>, Problem> {
        let rules = self.reader.rules();
        let processes = match (rules.size, job.requested, job.allocated) {
            (JobSize::Allocated, _, allocated @ 1..) => allocated,
            (_, requested @ 1.., _) => requested,
            (_, _, allocated) => allocated,
        };
        if job.run_time < 0 || processes <= 0 {
            return Ok(None);
        }
        if job.submitted < 0 {
            return Err(Problem::NoSubmission);
        }
        let machine = self.machine;
        let Some(size) = u32::try_from(processes).ok().filter(|&n| n <= machine) else {
            return Err(Problem::LargerThanMachine { processes, machine });
        };
        let memory = match self.memory {
            Some(most) => {
                let kilobytes = u64::try_from(job.requested_memory).unwrap_or_default();
                let memory = Bytes::new(kilobytes.saturating_mul(1024));
                if memory > most {
                    return Err(Problem::MoreThanMemory { memory, most });
                }
                memory
            }
            None => Bytes::ZERO,
        };
        if job.submitted > LAST || job.run_time > LAST || job.requested_time > LAST {
            return Err(Problem::TooLate);
        }
        if job.submitted < self.last {
            return Err(Problem::Unsorted { submitted: job.submitted, before: self.last });
        }
        let has_estimate = job.requested_time > 0;
        if !has_estimate && rules.no_estimate == NoEstimate::Malformed {
            return Err(Problem::NoEstimate);
        }
        let is_repeated = job.number >= 0 && self.numbers.is_repeated(job.number);
        if is_repeated && rules.repeated == Repeated::Malformed {
            return Err(Problem::Repeated { number: job.number });
        }
        self.last = job.submitted;
        let (mut run_time, mut estimate) = (job.run_time, job.requested_time);
        let ran_over = has_estimate && run_time > estimate;
        match rules.ran_over {
            _ if !has_estimate => estimate = run_time,
            RanOver::Keep => {}
            RanOver::Cut => run_time = run_time.min(estimate),
            RanOver::Raise => estimate = run_time.max(estimate),
        }
        let other_size = job.requested > 0 && job.allocated > 0 && job.requested != job.allocated;
        let odd = self.reader.odd();
        odd.ran_over += u64::from(ran_over);
        odd.no_estimate += u64::from(!has_estimate);
        odd.other_size += u64::from(other_size);
        odd.repeated += u64::from(is_repeated);
        odd.fractions += u64::from(job.had_fractions);
        Ok(Some(Submission {
            number: job.number.unsigned_abs(),
            submitted: Time::from_secs(job.submitted.unsigned_abs()),
            processes: size,
            runtime: Span::from_secs(run_time.unsigned_abs()),
            estimate: Span::from_secs(estimate.unsigned_abs()),
            usage: Usage::FULL,
            memory,
        }))
    }
}

impl Iterator for Trace {
    type Item = Result<Submission, SwfError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let job = match self.reader.next() {
                Some(Ok(job)) => job,
                Some(Err(error)) => return Some(Err(error)),
                None if self.has_jobs => return None,
                None => {
                    self.has_jobs = true;
                    let (path, skipped) =
                        (self.reader.path().to_owned(), Box::new(*self.skipped()));
                    return Some(Err(SwfError::Empty { path, skipped }));
                }
            };
            match self.submission(&job) {
                Ok(Some(submission)) => {
                    self.has_jobs = true;
                    return Some(Ok(submission));
                }
                Ok(None) => self.reader.never_ran(),
                Err(problem) => match self.reader.malformed(problem) {
                    Ok(()) => {}
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
