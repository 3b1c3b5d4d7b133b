//! Figures of a run's parallel jobs, added up as jobs end, in memory that does not grow with the
//! number of jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_units::{Span, Time};
use dormouse_workload::Moments;

use super::series::JobSeries;
use crate::{JobHistory, SpellEnd};

/// Greatest number of longest-waiting jobs that [`JobFigures`] lists.
const LONGEST: usize = 12;

/// One of the jobs of a run that waited longest for processors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LongWait {
    /// Time from the submission of the job until it first had processors.
    pub wait: Span,
    /// Number of the job in the trace; among equal waits the smaller number comes first.
    pub number: Reverse<u64>,
    /// Number of processes of the job.
    pub processes: u32,
    /// Run time that the job's user estimated.
    pub estimate: Span,
    /// Time from the job's submission to its end.
    pub response: Span,
}

/// Figures of the parallel jobs of a run. Call [`Self::add`] for each job that ended.
#[derive(Clone, Debug, Default)]
pub struct JobFigures {
    /// Response times of the jobs, in seconds.
    pub response: Moments,
    /// Bounded slowdowns of the jobs.
    pub slowdown: Moments,
    /// Waits until a job first had processors, in seconds.
    pub wait: Moments,
    /// Number of promotions of background jobs to the foreground in place, by a swap.
    pub swaps: u64,
    /// Number of promotions of background jobs by kill and restart.
    pub kills: u64,
    /// Number of promotions of background jobs by migration.
    pub migrations: u64,
    /// Number of jobs that ended without ever having been in the foreground.
    pub background_only: u64,
    /// Sum of processes × run time, in processor-seconds.
    work_s: f64,
    first: Option<Time>,
    end: Time,
    longest: BinaryHeap<Reverse<LongWait>>,
    /// Processors in use and jobs waiting, over time.
    pub series: JobSeries,
}

impl JobFigures {
    /// Adds a job that has ended; one that never started is left out.
    pub fn add(&mut self, history: &JobHistory) {
        let (Some(started), Some(ended)) = (history.started(), history.ended) else { return };
        let job = &history.job;
        let (wait, response) = (started.since(job.submitted), ended.since(job.submitted));
        self.response.add(response.as_secs_f64());
        self.slowdown.add(history.bounded_slowdown().unwrap_or(1.0));
        self.wait.add(wait.as_secs_f64());
        self.swaps += u64::from(history.left_by(SpellEnd::Swapped));
        self.kills += u64::from(history.left_by(SpellEnd::Killed));
        self.migrations += u64::from(history.left_by(SpellEnd::Migrated));
        self.background_only += u64::from(history.foreground().is_none());
        self.work_s += f64::from(job.processes) * job.runtime.as_secs_f64();
        self.first = self.first.min(Some(job.submitted)).or(Some(job.submitted));
        self.end = self.end.max(ended);
        self.series.add(history, (started, ended));
        self.add_wait(LongWait {
            wait,
            number: Reverse(job.number),
            processes: job.processes,
            estimate: job.estimate,
            response,
        });
    }

    fn add_wait(&mut self, job: LongWait) {
        if self.longest.len() < LONGEST {
            self.longest.push(Reverse(job));
        } else if self.longest.peek().is_some_and(|Reverse(least)| job > *least) {
            self.longest.pop();
            self.longest.push(Reverse(job));
        }
    }

    /// Number of jobs that ended.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.response.count()
    }

    /// Time of the last end; zero if no job has ended.
    #[must_use]
    pub const fn end(&self) -> Time {
        self.end
    }

    /// Time from the first submission to the last end.
    #[must_use]
    pub fn makespan(&self) -> Span {
        self.end.since(self.first.unwrap_or(self.end))
    }

    /// Work of all jobs (processes × run time, in processor-seconds) divided by the makespan: a mean number of processors. It may
    /// exceed the machine's number of processors if jobs share them.
    #[must_use]
    pub fn work_rate(&self) -> f64 {
        let time = self.makespan().as_secs_f64();
        if time > 0.0 { self.work_s / time } else { 0.0 }
    }

    /// The work rate (see [`Self::work_rate`]) divided by `machine`, the number of processors.
    #[must_use]
    pub fn utilisation(&self, machine: u32) -> f64 {
        self.work_rate() / f64::from(machine.max(1))
    }

    /// The jobs with the longest waits, the longest first.
    #[must_use]
    pub fn longest_waits(&self) -> Vec<LongWait> {
        let mut all: Vec<_> = self.longest.iter().map(|Reverse(job)| job.clone()).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}
