//! The jobs of an experiment as a stream.

use dormouse_policies::batch::Submission;
use dormouse_units::{Time, Usage};
use dormouse_workload::{
    Skipped, Statistics, SwfError, Trace, UsageRule, offered_load, scale_arrivals,
};

use super::JobsError;
use super::generated::generated;
use crate::experiment::{Batch, Experiment, JobSource, JobSpec, UsageKind};

/// Submissions in order, with load and usage as the experiment says. A log is streamed: what
/// is in memory does not grow with it.
#[derive(Debug)]
pub struct Jobs {
    expected: Option<u64>,
    source: Source,
    /// What times between submissions are multiplied by.
    factor: f64,
    /// How their usage is assigned, unless they have it already.
    rule: Option<UsageRule>,
}

#[derive(Debug)]
enum Source {
    Log(Box<Trace>),
    List(std::vec::IntoIter<Submission>),
}

impl Jobs {
    /// Opens the workload of an experiment; `None`: it has no parallel jobs.
    ///
    /// # Errors
    ///
    /// The log can't be read or has no load to scale; the model can't make it.
    pub fn of(experiment: &Experiment) -> Result<Option<Self>, JobsError> {
        let open = |jobs: &Batch| Self::open(jobs, &experiment.name, experiment.setup.seed);
        experiment.jobs.as_deref().map(open).transpose()
    }

    fn open(batch: &Batch, name: &str, seed: u64) -> Result<Self, JobsError> {
        let workload = &batch.workload;
        // One tier never asks for usage.
        let draws =
            workload.usage == UsageKind::Drawn && batch.scheduler.name.promotion().is_some();
        let rule = if draws { UsageRule::paper(seed) } else { UsageRule::full() };
        let machine = workload.processors;
        let mut jobs = match &workload.source {
            JobSource::Swf { log, on_malformed } => {
                let memory = batch.simulation(seed).space().memory;
                let open = || {
                    let trace = Trace::open(log, Some(machine), *on_malformed)?;
                    Ok::<_, SwfError>(trace.with_memory(memory))
                };
                let mut load = 1.0;
                if workload.load.is_some() {
                    // Twice through the file, so that it never has to be in memory.
                    let trace = open()?;
                    let mut statistics = Statistics::new(machine);
                    for job in trace {
                        statistics.add(&job?);
                    }
                    load = statistics.offered_load();
                    if load <= 0.0 {
                        return Err(JobsError::NoLoad(log.display().to_string()));
                    }
                }
                let trace = open()?;
                Self {
                    expected: trace.reader().header().jobs(),
                    source: Source::Log(Box::new(trace)),
                    factor: load,
                    rule: Some(rule),
                }
            }
            JobSource::Model { model, jobs, estimates } => {
                let list =
                    generated(*model, |targets| targets, (*jobs, machine), *estimates, seed)?;
                Self::of_list(list, machine, Some(rule))
            }
            JobSource::Jobs { job } => {
                let list = (1..).zip(job).map(|(number, spec)| submission(number, spec, &rule));
                Self::of_list(list.collect(), machine, None)
            }
        };
        jobs.factor = workload.load.map_or(1.0, |wanted| jobs.factor / wanted);
        if jobs.factor <= 0.0 {
            return Err(JobsError::NoLoad(name.to_owned()));
        }
        Ok(jobs)
    }

    fn of_list(list: Vec<Submission>, machine: u32, rule: Option<UsageRule>) -> Self {
        let factor = offered_load(&list, machine);
        let expected = Some(list.len() as u64);
        Self { expected, source: Source::List(list.into_iter()), factor, rule }
    }

    /// How many jobs there will be, if that is known.
    #[must_use]
    pub const fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// What was left out of a log so far.
    #[must_use]
    pub fn skipped(&self) -> Option<Skipped> {
        match &self.source {
            Source::Log(trace) => Some(*trace.skipped()),
            Source::List(_) => None,
        }
    }
}

fn submission(number: u64, spec: &JobSpec, rule: &UsageRule) -> Submission {
    let job = Submission {
        number,
        submitted: Time::ZERO + spec.submitted,
        processes: spec.processes,
        runtime: spec.runtime,
        estimate: spec.estimate,
        usage: Usage::FULL,
        memory: spec.memory,
    };
    match spec.usage {
        Some(usage) => Submission { usage: Usage::Uniform(usage), ..job },
        None => rule.assign(job),
    }
}

impl Iterator for Jobs {
    type Item = Result<Submission, JobsError>;

    fn next(&mut self) -> Option<Self::Item> {
        let job = match &mut self.source {
            Source::Log(trace) => match trace.next()? {
                Ok(job) => job,
                Err(error) => return Some(Err(error.into())),
            },
            Source::List(list) => list.next()?,
        };
        #[expect(clippy::float_cmp, reason = "exactly 1: the times as they are")]
        let job = if self.factor == 1.0 { job } else { scale_arrivals(job, self.factor) };
        Some(Ok(match &self.rule {
            Some(rule) => rule.assign(job),
            None => job,
        }))
    }
}
