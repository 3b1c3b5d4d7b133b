//! What a run comes to, gathered as its jobs end; as large for a million jobs as for one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_units::{Span, Time};
use dormouse_workload::Moments;

use super::series::Series;
use crate::{JobHistory, SpellEnd};

/// So many of the jobs that waited longest are kept.
const LONGEST: usize = 12;

/// A job that waited long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waited {
    /// How long, until it first had processors.
    pub wait: Span,
    /// Number of the job in the trace; the smaller comes first among equals.
    pub number: Reverse<u64>,
    /// Number of processes of the job.
    pub processes: u32,
    /// What its user said.
    pub estimate: Span,
    /// From its submission to its end.
    pub response: Span,
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Response times in seconds.
    pub response: Moments,
    /// Bounded slowdowns of the jobs.
    pub slowdown: Moments,
    /// Waits until a job first had processors, in seconds.
    pub wait: Moments,
    /// Promotions in place.
    pub swaps: u64,
    /// Promotions by kill and restart.
    pub kills: u64,
    /// Promotions by migration.
    pub migrations: u64,
    /// Jobs that ended without ever having been in the foreground.
    pub background_only: u64,
    /// Processes × run time, in seconds of a processor.
    work_s: f64,
    first: Option<Time>,
    end: Time,
    longest: BinaryHeap<Reverse<Waited>>,
    /// Processors busy and jobs waiting over time.
    pub series: Series,
}

impl Figures {
    /// Counts in a job that has ended; one that never started is left out.
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
        self.waited(Waited {
            wait,
            number: Reverse(job.number),
            processes: job.processes,
            estimate: job.estimate,
            response,
        });
    }

    fn waited(&mut self, job: Waited) {
        if self.longest.len() < LONGEST {
            self.longest.push(Reverse(job));
        } else if self.longest.peek().is_some_and(|Reverse(least)| job > *least) {
            self.longest.pop();
            self.longest.push(Reverse(job));
        }
    }

    /// Jobs that ended.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.response.count()
    }

    /// The end of the job that ended last; zero where none has ended.
    #[must_use]
    pub const fn end(&self) -> Time {
        self.end
    }

    /// From the first submission to the last end.
    #[must_use]
    pub fn makespan(&self) -> Span {
        self.end.since(self.first.unwrap_or(self.end))
    }

    /// So many processors with one job each would have done the same work in that time. Where two
    /// jobs share a processor it can be more than there are.
    #[must_use]
    pub fn work_rate(&self) -> f64 {
        let time = self.makespan().as_secs_f64();
        if time > 0.0 { self.work_s / time } else { 0.0 }
    }

    /// The same as a part of `machine` processors.
    #[must_use]
    pub fn utilisation(&self, machine: u32) -> f64 {
        self.work_rate() / f64::from(machine.max(1))
    }

    /// The jobs that waited longest, the longest first.
    #[must_use]
    pub fn longest_waits(&self) -> Vec<Waited> {
        let mut all: Vec<_> = self.longest.iter().map(|Reverse(job)| job.clone()).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}
