//! The jobs of a workload as a stream: from a log or a model, with the times of a log counted from the run's start.

use std::io;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use dormouse_model::{Calendar, Submission};
use dormouse_units::{Bytes, Span, Time, Usage};

use crate::{
    BatchWorkload, Estimates, EstimatesError, JobSource, JobSpec, LogRules, Model, ModelError,
    RequestError, Shape, Skipped, Statistics, SwfError, Trace, UnscalableArrival, UsageKind,
    UsageRule, offered_load, scale_arrivals, tsafrir_estimates,
};

/// Greatest number of jobs of a log that are counted before the first job runs.
pub const COUNTED_AHEAD: usize = 1 << 16;

/// Reason why the jobs of a workload can't be read or generated.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The log can't be read.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// The model can't generate the requested jobs.
    #[error("workload: {0}")]
    Model(#[from] ModelError),
    /// The estimates can't be made.
    #[error("workload.estimates: {0}")]
    Estimates(#[from] EstimatesError),
    /// The load of the workload can't be scaled.
    #[error(
        "{0}: workload.load has nothing to scale: it takes two jobs submitted at different times"
    )]
    NoLoad(String),
    /// The time of a submission can't be scaled to the requested load.
    #[error("{name}: {source}")]
    Unscalable {
        /// The file of the log, or the name of the workload.
        name: String,
        /// Error about the submission whose time can't be scaled.
        source: UnscalableArrival,
    },
    /// The requests for VMs can't be read or generated.
    #[error(transparent)]
    Requests(#[from] RequestError),
}

/// The workload that is to be opened, with the settings to open it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The workload whose jobs are wanted.
    pub workload: &'a BatchWorkload,
    /// True if CPU usage is needed; schedulers of one tier never need it.
    pub usage: bool,
    /// Memory that a process can have; `None`: it is unknown.
    pub memory: Option<Bytes>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Opens a log for reading.
    pub open: fn(&Path) -> io::Result<Box<dyn Read + Send>>,
}

/// The jobs of a workload with load, estimates and usage set: first the jobs that follow other jobs, as these can
/// become ready at any time, then the rest by submission. A log is streamed: only jobs that follow other jobs are
/// held in memory.
#[derive(Debug)]
pub struct Jobs {
    /// Jobs that follow other jobs and were not returned yet.
    followers: std::vec::IntoIter<Submission>,
    source: SubmissionSource,
    /// The name of the workload in messages.
    name: String,
    /// Factor by which times between submissions are multiplied, and the submission time from which they are
    /// measured.
    factor: f64,
    first: Time,
    estimates: Estimates,
    /// Rule by which CPU usage is assigned; `None`: the jobs have it already.
    rule: Option<UsageDraw>,
    /// Shift of the log's submission times to the run's clock; `None`: the jobs are not from a log.
    origin: Option<SubmissionOrigin>,
}

/// Input that a workload takes its submissions from.
#[derive(Debug)]
enum SubmissionSource {
    Log { trace: Box<Trace>, left: usize, follow: bool, counted: usize },
    List { list: Arc<[Submission]>, next: usize, left: usize },
}

/// Rule by which CPU usage is drawn: for each process, or one value for all processes of a job.
#[derive(Clone, Copy, Debug)]
struct UsageDraw {
    usage: UsageRule,
    each_job: bool,
}

impl UsageDraw {
    fn assign_usage(&self, job: Submission) -> Submission {
        if self.each_job { self.usage.assign_one(job) } else { self.usage.assign_usage(job) }
    }
}

/// All jobs of a workload before load, estimates and usage are set, so that experiments that differ
/// only in these can share the list.
#[derive(Clone, Debug)]
pub struct Listed {
    jobs: Arc<[Submission]>,
    load: f64,
}

impl Listed {
    /// Number of jobs in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// True if the list has no jobs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn new(jobs: Vec<Submission>, machine: u32) -> Self {
        Self { load: offered_load(&jobs, machine), jobs: jobs.into() }
    }

    /// Reads or generates the jobs of a workload; all jobs of a log are then in memory.
    ///
    /// # Errors
    ///
    /// The log can't be read, or the model can't make the jobs.
    pub fn read(wanted: &Wanted<'_>) -> Result<Self, WorkloadError> {
        let machine = wanted.workload.processors;
        let jobs = match &wanted.workload.source {
            JobSource::Swf { log, rules, first, .. } => {
                let mut trace = wanted.open_log(log, *rules)?;
                let jobs = trace.by_ref().take(first.unwrap_or(usize::MAX));
                let mut jobs: Vec<Submission> = jobs.collect::<Result<_, _>>()?;
                if !trace.has_follow_ups() {
                    jobs.iter_mut().for_each(|job| job.after = None);
                }
                jobs
            }
            JobSource::Model { model, jobs, estimates, shape } => {
                generate_jobs(*model, *shape, (*jobs, machine), *estimates, wanted.seed)?
            }
            JobSource::Jobs { job } => {
                let rule = wanted.usage_draw();
                (1..).zip(job).map(|(number, spec)| make_submission(number, spec, &rule)).collect()
            }
        };
        Ok(Self::new(jobs, machine))
    }
}

impl Wanted<'_> {
    /// Rule by which the workload's jobs get their CPU usage.
    fn usage_draw(&self) -> UsageDraw {
        let usage = self.workload.usage;
        let draws = usage != UsageKind::Full && self.usage;
        UsageDraw {
            usage: if draws { UsageRule::paper_rule(self.seed) } else { UsageRule::full_usage() },
            each_job: usage == UsageKind::DrawnEachJob,
        }
    }

    /// Calendar of a run of the workload, from the log's dates. A workload whose load is scaled has no calendar, since
    /// its times between submissions are not the log's.
    ///
    /// # Errors
    ///
    /// The log can't be read, or has no job.
    pub fn calendar(&self) -> Result<Calendar, WorkloadError> {
        let JobSource::Swf { log, rules, .. } = &self.workload.source else {
            return Ok(Calendar::UNKNOWN);
        };
        let mut trace = self.open_log(log, *rules)?;
        let Some(first) = trace.next().transpose()? else { return Ok(Calendar::UNKNOWN) };
        let calendar = calendar_of_log(first.submitted, trace.reader().header().unix_start());
        match self.workload.load {
            None => Ok(calendar),
            Some(_) => Ok(Calendar { began: None, ..calendar }),
        }
    }

    fn open_log(&self, log: &Path, rules: LogRules) -> Result<Trace, SwfError> {
        let trace = Trace::from_file(log, (self.open)(log), Some(self.workload.processors), rules)?;
        Ok(trace.with_memory(self.memory))
    }
}

impl Jobs {
    /// Opens a workload, which is called `name` in messages.
    ///
    /// # Errors
    ///
    /// The log can't be read or has no load to scale, or the model can't make the jobs.
    pub fn open(wanted: &Wanted<'_>, name: &str) -> Result<Self, WorkloadError> {
        let JobSource::Swf { log, rules, estimates, first } = &wanted.workload.source else {
            return Self::listed(wanted, name, &Listed::read(wanted)?);
        };
        let (scaled_to, most) = (wanted.workload.load, first.unwrap_or(usize::MAX));
        let (name, mut first, mut load) = (log.display().to_string(), Time::ZERO, 1.0);
        let mut followers = Vec::new();
        let ahead = wanted.open_log(log, *rules)?.look_ahead(most.min(COUNTED_AHEAD));
        let mut follow = ahead.may_have_follow_ups;
        if scaled_to.is_some() || follow {
            // Twice through the file, so that it never has to be in memory.
            let mut statistics = Statistics::new(wanted.workload.processors);
            let mut trace = wanted.open_log(log, *rules)?;
            let mut is_first = true;
            for job in trace.by_ref().take(most) {
                let job = match job {
                    Ok(job) => job,
                    // The error comes up again when the jobs are read for the run.
                    Err(_) if scaled_to.is_none() => break,
                    Err(error) => return Err(error.into()),
                };
                if std::mem::take(&mut is_first) {
                    first = job.submitted;
                }
                if scaled_to.is_some() {
                    statistics.add(&job);
                }
                if job.after.is_some() {
                    followers.push(job);
                }
            }
            follow &= trace.has_follow_ups();
            if let Some(scaled_to) = scaled_to {
                load = statistics.offered_load() / scaled_to;
            }
            if load <= 0.0 {
                return Err(WorkloadError::NoLoad(name));
            }
        }
        if !follow {
            followers.clear();
        }
        let trace = Box::new(wanted.open_log(log, *rules)?);
        Ok(Self {
            followers: followers.into_iter(),
            source: SubmissionSource::Log { trace, left: most, follow, counted: ahead.jobs },
            name,
            factor: load,
            first,
            estimates: *estimates,
            rule: Some(wanted.usage_draw()),
            // Jobs that follow others come before the first of the log.
            origin: Some(if follow || scaled_to.is_some() {
                SubmissionOrigin::of_log(first)
            } else {
                SubmissionOrigin::default()
            }),
        })
    }

    /// Opens a workload whose jobs have been read already.
    ///
    /// # Errors
    ///
    /// The jobs have no load to scale.
    pub fn listed(wanted: &Wanted<'_>, name: &str, listed: &Listed) -> Result<Self, WorkloadError> {
        let Wanted { workload, .. } = wanted;
        let estimates = match &workload.source {
            JobSource::Swf { estimates, .. } | JobSource::Model { estimates, .. } => *estimates,
            JobSource::Jobs { .. } => Estimates::Given,
        };
        // Jobs that stand in the experiment have their usage.
        let given = matches!(workload.source, JobSource::Jobs { .. });
        let is_log = matches!(workload.source, JobSource::Swf { .. });
        let factor = workload.load.map_or(1.0, |scaled_to| listed.load / scaled_to);
        if factor <= 0.0 {
            return Err(WorkloadError::NoLoad(name.to_owned()));
        }
        let list = listed.jobs.clone();
        let followers: Vec<_> = list.iter().filter(|job| job.after.is_some()).cloned().collect();
        // Generated and written jobs begin at time zero, a log begins with its first job.
        let first = match &workload.source {
            JobSource::Swf { .. } => list.first().map_or(Time::ZERO, |job| job.submitted),
            JobSource::Model { .. } | JobSource::Jobs { .. } => Time::ZERO,
        };
        let left = list.len() - followers.len();
        Ok(Self {
            followers: followers.into_iter(),
            source: SubmissionSource::List { list, next: 0, left },
            name: name.to_owned(),
            factor,
            first,
            estimates,
            rule: (!given).then(|| wanted.usage_draw()),
            origin: is_log.then(|| SubmissionOrigin::of_log(first)),
        })
    }

    /// Number of remaining jobs; `None` for a log, whose header may be wrong.
    #[must_use]
    pub fn known(&self) -> Option<usize> {
        match &self.source {
            SubmissionSource::Log { .. } => None,
            SubmissionSource::List { left, .. } => Some(self.followers.len() + left),
        }
    }

    /// Lower bound of the number of remaining jobs: the jobs of a log are counted up to [`COUNTED_AHEAD`].
    #[must_use]
    pub fn at_least(&self) -> usize {
        match &self.source {
            SubmissionSource::Log { counted, .. } => *counted,
            SubmissionSource::List { left, .. } => self.followers.len() + left,
        }
    }

    /// Jobs of a log that were left out so far; `None`: the jobs are not from a log.
    #[must_use]
    pub fn skipped(&self) -> Option<Skipped> {
        match &self.source {
            SubmissionSource::Log { trace, .. } => Some(trace.skipped()),
            SubmissionSource::List { .. } => None,
        }
    }
}

fn make_submission(number: u64, spec: &JobSpec, rule: &UsageDraw) -> Submission {
    let job = Submission {
        number,
        submitted: Time::ZERO + spec.submitted,
        processes: spec.processes,
        runtime: spec.runtime,
        estimate: spec.estimate.unwrap_or(spec.runtime),
        usage: Usage::FULL,
        memory: spec.memory,
        priority: spec.priority,
        after: None,
        is_cut: false,
        fails: false,
    };
    match spec.usage {
        Some(usage) => Submission { usage: Usage::Uniform(usage), ..job },
        None => rule.assign_usage(job),
    }
}

impl Jobs {
    /// Returns the source's next job that follows no other job.
    fn next_of_source(&mut self) -> Option<Result<Submission, WorkloadError>> {
        match &mut self.source {
            SubmissionSource::Log { trace, left, follow, .. } => loop {
                *left = left.checked_sub(1)?;
                match trace.next()? {
                    Ok(job) if job.after.is_none() => return Some(Ok(job)),
                    // Those came first.
                    Ok(_) if *follow => {}
                    Ok(job) => return Some(Ok(Submission { after: None, ..job })),
                    Err(error) => return Some(Err(error.into())),
                }
            },
            SubmissionSource::List { list, next, left } => loop {
                let job = list.get(*next)?;
                *next += 1;
                if job.after.is_none() {
                    *left -= 1;
                    return Some(Ok(job.clone()));
                }
            },
        }
    }
}

impl Iterator for Jobs {
    type Item = Result<Submission, WorkloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let job = match self.followers.next() {
            Some(job) => job,
            None => match self.next_of_source()? {
                Ok(job) => job,
                Err(error) => return Some(Err(error)),
            },
        };
        let job = self.estimates.apply(job);
        #[expect(clippy::float_cmp, reason = "exactly 1: the times as they are")]
        let job = if self.factor == 1.0 {
            job
        } else {
            match scale_arrivals(job, self.first, self.factor) {
                Ok(job) => job,
                Err(source) => {
                    let name = self.name.clone();
                    return Some(Err(WorkloadError::Unscalable { name, source }));
                }
            }
        };
        // Scaled times are still on the log's clock: the first submission is unchanged.
        let job = match &mut self.origin {
            Some(origin) => origin.shift_submission(job),
            None => job,
        };
        Some(Ok(match &self.rule {
            Some(rule) => rule.assign_usage(job),
            None => job,
        }))
    }
}

/// Generates `jobs` jobs by a model for `machine` processors, as the model submits them: load and
/// CPU usage are set elsewhere.
///
/// Estimates are limited like the runs, as under a queue's limit: 18 h for fw-like and jw-like.
///
/// # Errors
///
/// The models can't generate so many jobs, or any for such a machine.
pub(super) fn generate_jobs(
    model: Model,
    shape: Shape,
    (jobs, machine): (usize, u32),
    estimates: Estimates,
    seed: u64,
) -> Result<Vec<Submission>, WorkloadError> {
    let (mut list, longest) = match model.targets().map(|targets| shape.apply(targets)) {
        Some(targets) => (targets.generate(jobs, machine, seed)?, targets.longest),
        None => (model.generate(jobs, machine, seed)?, model.longest()),
    };
    if estimates == Estimates::Tsafrir {
        tsafrir_estimates(&mut list, longest, seed)?;
    }
    Ok(list)
}

/// First submission time, one year, from which on a log's times are shifted to begin at zero. Most logs count from
/// near their own beginning; a later first time is a date, or from the middle of a long log.
const FAR: Span = Span::from_secs(365 * 86_400);

/// Range of seconds since 1970, from 1990 to 2100: times of a log in this range are dates.
const DATES: RangeInclusive<i64> = 631_152_000..=4_102_444_800;

/// Time by which a log's submissions are shifted so that a log that begins far from zero begins at zero; `None`: it
/// is found from the first job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubmissionOrigin(Option<Span>);

impl SubmissionOrigin {
    /// The shift for a log whose first job is submitted at this time.
    pub(crate) fn of_log(first: Time) -> Self {
        Self(Some(origin_of_log(first)))
    }

    /// A submission of the log with its time on the run's clock.
    pub(crate) fn shift_submission(&mut self, job: Submission) -> Submission {
        let origin = *self.0.get_or_insert_with(|| origin_of_log(job.submitted));
        Submission { submitted: job.submitted - origin, ..job }
    }
}

/// Instant of the log that is zero on the run's clock, given the first submission of the log.
fn origin_of_log(first: Time) -> Span {
    let first = first.since(Time::ZERO);
    if first < FAR { Span::ZERO } else { first }
}

/// Calendar of a run of a log, from its first submission and the start time in its header (seconds
/// since 1970; `None`: not given).
pub(crate) fn calendar_of_log(first: Time, unix_start: Option<u64>) -> Calendar {
    let log_time = origin_of_log(first);
    let second = i64::try_from(first.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let start = unix_start.and_then(|start| i64::try_from(start).ok());
    // Logs write zero if the date is unknown.
    let start = start.filter(|start| DATES.contains(start));
    let of_log = i64::try_from(log_time.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let began = match start {
        // Times that are past the beginning of the log count from 1970 themselves.
        Some(start) if second < start => Some(start + of_log),
        _ => Some(second).filter(|second| DATES.contains(second)),
    };
    Calendar { began, log_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_begin_where_their_first_job_is_submitted_if_that_is_far() {
        const START: u64 = 843_480_031;
        let year = 365 * 86_400;
        for (first, unix_start, began, log_time) in [
            // Logs of the archive count from their beginning, and most say when that was.
            (0, None, None, 0),
            (1_000, Some(0), None, 0),
            (5, Some(START), Some(843_480_031), 0),
            (year - 1, None, None, 0),
            // One from the middle of a log of many years.
            (year, None, None, year),
            (year + 7, Some(START), Some(843_480_031 + 31_536_007), year + 7),
            // Dates, whatever the header says of the beginning.
            (1_356_996_147, None, Some(1_356_996_147), 1_356_996_147),
            (1_356_996_147, Some(0), Some(1_356_996_147), 1_356_996_147),
            (1_356_996_147, Some(1_356_996_000), Some(1_356_996_147), 1_356_996_147),
            // No year that anybody lives in.
            (900_000_000_000, None, None, 900_000_000_000),
        ] {
            let log_time = Span::from_secs(log_time);
            let of = calendar_of_log(Time::from_secs(first), unix_start);
            assert_eq!(of, Calendar { began, log_time }, "{first} {unix_start:?}");
        }
    }
}
