//! The jobs of an experiment as a stream.

use std::fs::File;
use std::sync::Arc;

use dormouse_policies::batch::Submission;
use dormouse_units::{Time, Usage};
use dormouse_workload::{Skipped, Statistics, Trace, UsageRule, offered_load, scale_arrivals};

use super::JobsError;
use super::generated::generated;
use crate::experiment::{Batch, Estimates, Experiment, JobSource, JobSpec, UsageKind};

/// Submissions in order, with load, estimates and usage as the experiment says. A log is streamed:
/// what is in memory does not grow with it.
#[derive(Debug)]
pub struct Jobs {
    source: Source,
    /// What times between submissions are multiplied by.
    factor: f64,
    estimates: Estimates,
    /// How their usage is assigned, unless they have it already.
    rule: Option<Rule>,
}

#[derive(Debug)]
enum Source {
    Log { trace: Box<Trace>, left: usize },
    List { list: Arc<[Submission]>, next: usize },
}

/// How usage is drawn: for each process, or once for all of a job.
#[derive(Clone, Copy, Debug)]
struct Rule {
    usage: UsageRule,
    each_job: bool,
}

impl Rule {
    fn assign(&self, job: Submission) -> Submission {
        if self.each_job { self.usage.assign_one(job) } else { self.usage.assign(job) }
    }
}

/// All jobs of a workload as their source has them, before load, estimates and usage are set: what
/// experiments that differ only in those share.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    jobs: Arc<[Submission]>,
    load: f64,
}

impl Listed {
    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    fn of(jobs: Vec<Submission>, machine: u32) -> Self {
        Self { load: offered_load(&jobs, machine), jobs: jobs.into() }
    }

    /// Reads or makes the jobs of a batch; all of a log are in memory then.
    ///
    /// # Errors
    ///
    /// The log can't be read; the model can't make them.
    pub(crate) fn read(batch: &Batch, seed: u64) -> Result<Self, JobsError> {
        let machine = batch.workload.processors;
        let jobs = match &batch.workload.source {
            JobSource::Swf { first, .. } => {
                let trace = open_log(batch, seed)?;
                trace.take(first.unwrap_or(usize::MAX)).collect::<Result<_, _>>()?
            }
            JobSource::Model { model, jobs, estimates, shape } => {
                generated(*model, *shape, (*jobs, machine), *estimates, seed)?
            }
            JobSource::Jobs { job } => {
                let rule = rule(batch, seed);
                (1..).zip(job).map(|(number, spec)| submission(number, spec, &rule)).collect()
            }
        };
        Ok(Self::of(jobs, machine))
    }
}

/// How a batch's jobs get their usage. One tier never asks for it.
fn rule(batch: &Batch, seed: u64) -> Rule {
    let usage = batch.workload.usage;
    let draws = usage != UsageKind::Full && batch.scheduler.name.promotion().is_some();
    Rule {
        usage: if draws { UsageRule::paper(seed) } else { UsageRule::full() },
        each_job: usage == UsageKind::DrawnEachJob,
    }
}

fn open_log(batch: &Batch, seed: u64) -> Result<Trace, JobsError> {
    let JobSource::Swf { log, rules, .. } = &batch.workload.source else {
        return Err(JobsError::Schedule("the workload is of no log".to_owned()));
    };
    let trace = Trace::of(log, File::open(log), Some(batch.workload.processors), *rules)?;
    Ok(trace.with_memory(batch.simulation(seed).space().memory))
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
        let JobSource::Swf { log, estimates, first, .. } = &batch.workload.source else {
            return Self::listed(batch, name, seed, &Listed::read(batch, seed)?);
        };
        let (wanted, first) = (batch.workload.load, first.unwrap_or(usize::MAX));
        let mut load = 1.0;
        if wanted.is_some() {
            // Twice through the file, so that it never has to be in memory.
            let mut statistics = Statistics::new(batch.workload.processors);
            for job in open_log(batch, seed)?.take(first) {
                statistics.add(&job?);
            }
            load = statistics.offered_load();
            if load <= 0.0 {
                return Err(JobsError::NoLoad(log.display().to_string()));
            }
        }
        let trace = open_log(batch, seed)?;
        Ok(Self {
            source: Source::Log { trace: Box::new(trace), left: first },
            factor: wanted.map_or(1.0, |wanted| load / wanted),
            estimates: *estimates,
            rule: Some(rule(batch, seed)),
        })
    }

    /// The workload of a batch whose jobs are there already.
    ///
    /// # Errors
    ///
    /// They have no load to scale.
    pub(crate) fn listed(
        batch: &Batch,
        name: &str,
        seed: u64,
        listed: &Listed,
    ) -> Result<Self, JobsError> {
        let estimates = match &batch.workload.source {
            JobSource::Swf { estimates, .. } | JobSource::Model { estimates, .. } => *estimates,
            JobSource::Jobs { .. } => Estimates::Given,
        };
        // Jobs that stand in the experiment have their usage.
        let given = matches!(batch.workload.source, JobSource::Jobs { .. });
        let factor = batch.workload.load.map_or(1.0, |wanted| listed.load / wanted);
        if factor <= 0.0 {
            return Err(JobsError::NoLoad(name.to_owned()));
        }
        Ok(Self {
            source: Source::List { list: listed.jobs.clone(), next: 0 },
            factor,
            estimates,
            rule: (!given).then(|| rule(batch, seed)),
        })
    }

    /// How many jobs there will be; `None` of a log: what its header says of that may be wrong.
    #[must_use]
    pub fn known(&self) -> Option<usize> {
        match &self.source {
            Source::Log { .. } => None,
            Source::List { list, next } => Some(list.len() - next),
        }
    }

    /// What was left out of a log so far.
    #[must_use]
    pub fn skipped(&self) -> Option<Skipped> {
        match &self.source {
            Source::Log { trace, .. } => Some(*trace.skipped()),
            Source::List { .. } => None,
        }
    }
}

fn submission(number: u64, spec: &JobSpec, rule: &Rule) -> Submission {
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
            Source::Log { trace, left } => {
                *left = left.checked_sub(1)?;
                match trace.next()? {
                    Ok(job) => job,
                    Err(error) => return Some(Err(error.into())),
                }
            }
            Source::List { list, next } => {
                let job = list.get(*next)?.clone();
                *next += 1;
                job
            }
        };
        let job = self.estimates.of(job);
        #[expect(clippy::float_cmp, reason = "exactly 1: the times as they are")]
        let job = if self.factor == 1.0 { job } else { scale_arrivals(job, self.factor) };
        Some(Ok(match &self.rule {
            Some(rule) => rule.assign(job),
            None => job,
        }))
    }
}
