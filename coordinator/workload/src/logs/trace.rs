//! A log as a workload: its jobs as submissions, in order.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use dormouse_model::{JobPredecessors, Submission};
use dormouse_units::{Bytes, Span, Time, Usage};

use super::error::SwfError;
use super::job::SwfJob;
use super::problem::LineProblem;
use super::reader::SwfReader;
use super::rules::{
    FollowUps, JobSize, LogRules, NoEstimate, PartialExecutions, RanOver, Repeated, SeenNumbers,
};
use super::skipped::Skipped;

/// Greatest accepted time in seconds (31,000 years), so that sums can't overflow.
const LAST: i64 = 1_000_000_000_000;

/// The jobs of a log that ran, as submissions to a machine.
///
/// Size: requested processors, else allocated ones, or the other way round. Estimate: requested
/// time, else the run time. [`LogRules`] decide about oddities. A job whose run time or size is
/// unknown (−1, or size 0) never ran: it is always counted and skipped, since archives keep
/// cancelled jobs in their logs. Submission times are the log's; CPU usage is a whole processor
/// until assigned. Memory: the requested memory per processor, if the machine's memory is known.
#[derive(Debug)]
pub struct Trace {
    reader: SwfReader,
    machine: u32,
    /// Memory per processor that a process may use, if known.
    memory: Option<Bytes>,
    last: i64,
    numbers: SeenNumbers,
    /// Job numbers of the jobs that were skipped.
    left_out: SeenNumbers,
    filler: PrecedingJobField,
    /// True once a job was returned.
    has_jobs: bool,
}

/// Facts about a log that are found before its jobs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPreview {
    /// Lower bound of the number of the log's jobs.
    pub(crate) jobs: usize,
    /// True if a job may follow another.
    pub(crate) may_have_follow_ups: bool,
}

impl Trace {
    /// Opens a log as a workload for a machine of `machine` processors; `None`: the log's header gives the number.
    /// `file` is the result of opening the log at `path`.
    ///
    /// # Errors
    ///
    /// The file can't be read, or the size of the machine is unknown.
    pub fn from_file<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        machine: Option<u32>,
        rules: impl Into<LogRules>,
    ) -> Result<Self, SwfError> {
        Self::new(SwfReader::from_file(path, file, rules)?, machine)
    }

    /// The workload that `reader` reads.
    ///
    /// # Errors
    ///
    /// The size of the machine is unknown.
    pub fn new(reader: SwfReader, machine: Option<u32>) -> Result<Self, SwfError> {
        let no_machine = || match reader.header().unread_size() {
            None => SwfError::NoMachine { path: reader.path().to_owned() },
            Some(what) => SwfError::UnreadMachine { path: reader.path().to_owned(), what },
        };
        let machine = machine.or_else(|| reader.header().processors()).ok_or_else(no_machine)?;
        Ok(Self {
            reader,
            machine,
            memory: None,
            last: 0,
            numbers: SeenNumbers::default(),
            left_out: SeenNumbers::default(),
            filler: PrecedingJobField::default(),
            has_jobs: false,
        })
    }

    /// Returns the trace for a machine with this memory per processor; `None`: the memory is unknown, and jobs
    /// request no memory.
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
    pub fn skipped(&self) -> Skipped {
        let mut skipped = self.reader.skipped();
        if !self.has_follow_ups() {
            let odd = &mut skipped.odd;
            odd.follow_one = odd.follow_ups + odd.follow_none;
            (odd.follow_ups, odd.follow_none) = (0, 0);
        }
        skipped
    }

    /// True if the jobs read so far really follow other jobs. If all name the same preceding job, even that job
    /// itself, field 17 is only a filler.
    #[must_use]
    pub const fn has_follow_ups(&self) -> bool {
        !(self.filler.is_one && self.filler.is_own)
    }

    /// Scans a log from its beginning: finds out if a job may follow another, and counts jobs up to
    /// `most`. A line that can't be read ends the count; the error is reported when the jobs are
    /// read.
    #[must_use]
    pub(crate) fn look_ahead(mut self, most: usize) -> LogPreview {
        let jobs = self.by_ref().take(most).take_while(Result::is_ok).count();
        let is_kept = self.reader.rules().follow_ups == FollowUps::Kept;
        LogPreview { jobs, may_have_follow_ups: is_kept && self.reader.names_predecessors() }
    }

    /// The underlying reader, which returns all jobs of the log, including those that never ran.
    #[must_use]
    pub fn into_reader(self) -> SwfReader {
        self.reader
    }

    /// The reader of the log.
    #[must_use]
    pub const fn reader(&self) -> &SwfReader {
        &self.reader
    }

    /// The jobs that `job` follows; `None` if it follows no job, if one of them is not above it in the log, or if the
    /// rules ignore this order.
    fn jobs_before(&mut self, job: &SwfJob) -> Option<Arc<JobPredecessors>> {
        // In logs that number jobs from 1, a 0 here means no preceding job.
        let follows_none = job.preceding == 0 && !self.numbers.has_number(0);
        if job.preceding < 0 || follows_none || self.reader.rules().follow_ups == FollowUps::Ignored
        {
            return None;
        }
        self.filler.see_preceding(job);
        let jobs: Vec<i64> = [job.preceding].iter().chain(&job.preceding_others).copied().collect();
        if !jobs.iter().all(|number| self.numbers.has_number(*number)) {
            self.reader.odd_jobs().follow_none += 1;
            return None;
        }
        self.reader.odd_jobs().follow_ups += 1;
        let think = Span::from_secs(job.think_time.clamp(0, LAST).unsigned_abs());
        let jobs = jobs.into_iter().map(i64::unsigned_abs).collect();
        Some(Arc::new(JobPredecessors { jobs, think }))
    }

    /// True if the rules leave out partial executions and the line of `job` is for one of them.
    fn is_part(&self, job: &SwfJob) -> bool {
        self.reader.rules().partial_executions == PartialExecutions::LeftOut
            && is_partial(job)
            && (self.numbers.has_number(job.number) || self.left_out.has_number(job.number))
    }

    /// The submission of a job; `None` if it never ran.
    fn make_submission(&mut self, job: &SwfJob) -> Result<Option<Submission>, LineProblem> {
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
            return Err(LineProblem::NoSubmission);
        }
        let machine = self.machine;
        let Some(size) = u32::try_from(processes).ok().filter(|&n| n <= machine) else {
            return Err(LineProblem::LargerThanMachine { processes, machine });
        };
        let memory = match self.memory {
            Some(most) => {
                let kilobytes = u64::try_from(job.requested_memory).unwrap_or_default();
                let memory = Bytes::new(kilobytes.saturating_mul(1024));
                if memory > most {
                    return Err(LineProblem::MoreThanMemory { memory, most });
                }
                memory
            }
            None => Bytes::ZERO,
        };
        if job.submitted > LAST || job.run_time > LAST || job.requested_time > LAST {
            return Err(LineProblem::TooLate);
        }
        if job.submitted < self.last {
            return Err(LineProblem::Unsorted { submitted: job.submitted, before: self.last });
        }
        let exactly = |seconds: i64, n: usize| {
            Span::from_secs(seconds.max(0).unsigned_abs())
                + Span::from_micros(u64::from(job.micros[n]))
        };
        let (mut runtime, mut estimate) =
            (exactly(job.run_time, 1), exactly(job.requested_time, 2));
        let has_estimate = estimate > Span::ZERO;
        if !has_estimate && rules.no_estimate == NoEstimate::Malformed {
            return Err(LineProblem::NoEstimate);
        }
        let is_repeated = job.number >= 0 && self.numbers.has_number(job.number);
        if is_repeated && rules.repeated == Repeated::Malformed {
            return Err(LineProblem::Repeated { number: job.number });
        }
        self.last = job.submitted;
        let ran_over = has_estimate && runtime > estimate;
        match rules.ran_over {
            _ if !has_estimate => estimate = runtime,
            RanOver::Keep => {}
            RanOver::Cut => runtime = runtime.min(estimate),
            RanOver::Raise => estimate = runtime.max(estimate),
        }
        // Before its own number counts: it can't follow itself.
        let number = job.number;
        let after = self.jobs_before(job);
        if number >= 0 {
            self.numbers.is_repeated(number);
        }
        let is_cut = ran_over && rules.ran_over == RanOver::Cut;
        // A job killed at its limit never reports a failure.
        let fails = job.fails && !is_cut;
        let other_size = job.requested > 0 && job.allocated > 0 && job.requested != job.allocated;
        let odd = self.reader.odd_jobs();
        odd.ran_over += u64::from(ran_over);
        odd.no_estimate += u64::from(!has_estimate);
        odd.other_size += u64::from(other_size);
        odd.repeated += u64::from(is_repeated);
        odd.fractions += u64::from(job.had_fractions);
        odd.fails += u64::from(fails);
        odd.extra_fields += u64::from(job.had_more_fields);
        odd.partial +=
            u64::from(is_partial(job) && rules.partial_executions == PartialExecutions::LeftOut);
        Ok(Some(Submission {
            number: job.number.unsigned_abs(),
            submitted: Time::ZERO + exactly(job.submitted, 0),
            processes: size,
            runtime,
            estimate,
            usage: Usage::FULL,
            memory,
            priority: rules.priority.read(job),
            after,
            is_cut,
            fails,
        }))
    }
}

impl Trace {
    fn note_left_out(&mut self, job: &SwfJob) {
        if job.number >= 0 && !is_partial(job) {
            self.left_out.is_repeated(job.number);
        }
    }
}

/// True if a line is for one of several executions of a job, by its status.
const fn is_partial(job: &SwfJob) -> bool {
    matches!(job.status, 2..=4)
}

/// Content of field 17 (preceding job) over all lines that have one.
#[derive(Debug, Default)]
struct PrecedingJobField {
    /// The first number that field 17 (preceding job) of any line has; `None`: no line has one yet.
    names: Option<i64>,
    /// True if all lines with a preceding job name the same one.
    is_one: bool,
    /// True if one of the lines that name the preceding job is the line of that job itself.
    is_own: bool,
}

impl PrecedingJobField {
    const fn see_preceding(&mut self, job: &SwfJob) {
        match self.names {
            None => (self.names, self.is_one) = (Some(job.preceding), true),
            Some(one) => self.is_one &= one == job.preceding,
        }
        self.is_one &= job.preceding_others.is_empty();
        self.is_own |= job.number == job.preceding;
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
                    let (path, skipped) = (self.reader.path().to_owned(), Box::new(self.skipped()));
                    return Some(Err(SwfError::Empty { path, skipped }));
                }
            };
            if self.is_part(&job) {
                self.reader.count_partial();
                continue;
            }
            match self.make_submission(&job) {
                Ok(Some(submission)) => {
                    self.has_jobs = true;
                    return Some(Ok(submission));
                }
                Ok(None) => {
                    self.reader.never_ran();
                    self.note_left_out(&job);
                }
                Err(problem) => match self.reader.on_malformed(problem) {
                    Ok(()) => self.note_left_out(&job),
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::rules::OnMalformed;
    use super::*;

    fn ahead(lines: &[&str], rules: impl Into<LogRules>, most: usize) -> LogPreview {
        let text = format!("; MaxProcs: 8\n{}\n", lines.join("\n"));
        let file = Ok(Cursor::new(text.into_bytes()));
        let trace =
            Trace::from_file(Path::new("x.swf"), file, None, rules).expect("it has a machine");
        trace.look_ahead(most)
    }

    const NONE: &str = "1 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1";

    #[test]
    fn a_job_that_may_follow_another_is_found_wherever_it_stands() {
        let follows = [
            "2 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 1 -1",
            "2 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 1&3 5",
            "2  0 0  10 1 -1 -1  1 60 -1 1 1 1 1 1 1 1 -1",
            // With fields more, the last two are not about it; nor are they with tabs.
            "2 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 1 7 -1 -1",
            "2 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 1\t7\t-1 -1",
            // It never ran, and nobody is told of it; as ever, it counts here.
            "2 0 0 -1 1 -1 -1 1 60 -1 1 1 1 1 1 1 0 -1",
        ];
        let follows_none = [
            NONE,
            "2   0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1   -1 -1",
            "2 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1 -1 -1",
            "2 0 0 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 5",
            "",
            "; a comment",
            "too few -1 -1",
        ];
        for most in [0, 1, 2, 9] {
            for (lines, may) in [(&follows[..], true), (&follows_none, false)] {
                for line in lines {
                    let found = ahead(&[NONE, NONE, line, NONE], OnMalformed::Skip, most);
                    assert_eq!(found.may_have_follow_ups, may, "{line}, {most} counted");
                }
            }
            let rules = LogRules { follow_ups: FollowUps::Ignored, ..LogRules::default() };
            assert!(!ahead(&[NONE, follows[0]], rules, most).may_have_follow_ups);
        }
    }

    #[test]
    fn as_many_jobs_are_counted_as_run_and_are_asked_for() {
        let never_ran = "2 0 0 -1 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1";
        let malformed = "2 0 0 x 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1";
        let all = [NONE, never_ran, NONE, malformed, NONE];
        for (on_malformed, most, jobs) in [
            (OnMalformed::Skip, 9, 3),
            (OnMalformed::Skip, 2, 2),
            (OnMalformed::Skip, 0, 0),
            // What is behind it never runs.
            (OnMalformed::Fail, 9, 2),
        ] {
            assert_eq!(ahead(&all, on_malformed, most).jobs, jobs, "{on_malformed:?}, {most}");
        }
        assert_eq!(ahead(&[never_ran], OnMalformed::Skip, 9).jobs, 0);
    }
}
