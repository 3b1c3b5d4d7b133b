//! The parallel jobs that a chart shows: those of a window of time, the first of them if they are too many.

use std::collections::BTreeMap;

use dormouse_units::{TaskId, Time};

use crate::{Change, JobHistory, Record};

/// The most jobs that a chart keeps: a page with more is too large to be looked at.
pub const MOST_DRAWN: usize = 2_000;

/// The jobs that are in the system at some time of a window.
#[derive(Clone, Debug)]
pub struct JobsOfWindow {
    /// Jobs that have ended, and at the end of the record those that have not.
    jobs: BTreeMap<TaskId, JobHistory>,
    /// The window that was asked for.
    wanted: (Time, Time),
    /// The time at which the first was submitted.
    first: Option<Time>,
    /// The number of jobs that were submitted in the window.
    seen: usize,
    /// The first that is one too many, and when it was submitted.
    cut: Option<(TaskId, Time)>,
    /// The last that was seen of those that are kept.
    last: Time,
}

impl Default for JobsOfWindow {
    fn default() -> Self {
        Self::within((Time::ZERO, Time::from_micros(u64::MAX)))
    }
}

impl JobsOfWindow {
    /// No job yet of those from one time to another.
    #[must_use]
    pub const fn within(wanted: (Time, Time)) -> Self {
        Self { jobs: BTreeMap::new(), wanted, first: None, seen: 0, cut: None, last: Time::ZERO }
    }

    /// Takes in what the last step of a record changed.
    pub fn see(&mut self, record: &Record) {
        for change in record.changes() {
            if let Change::JobHeard(id) = *change {
                self.submitted(record.now, id);
            }
        }
        for job in &record.closed().jobs {
            self.ended(record.now, job);
        }
    }

    fn submitted(&mut self, now: Time, id: TaskId) {
        self.first.get_or_insert(now);
        if now > self.wanted.1 {
            return;
        }
        self.seen += 1;
        if self.seen > MOST_DRAWN && self.cut.is_none() {
            self.cut = Some((id, now));
        }
        if self.is_kept(id) {
            self.last = self.last.max(now);
        }
    }

    fn is_kept(&self, id: TaskId) -> bool {
        self.cut.is_none_or(|(first_out, _)| id < first_out)
    }

    fn is_wanted(&self, job: &JobHistory) -> bool {
        job.heard.is_some_and(|at| at <= self.wanted.1) && self.is_kept(job.id)
    }

    fn ended(&mut self, now: Time, job: &JobHistory) {
        if !self.is_wanted(job) {
            return;
        }
        if now < self.wanted.0 {
            self.seen -= 1;
        } else {
            self.jobs.insert(job.id, job.clone());
            self.last = self.last.max(now);
        }
    }

    /// These jobs with those that have not ended in the record, which is whole.
    #[must_use]
    pub fn with_the_rest(mut self, record: &Record) -> Self {
        let left = record.jobs.iter().filter(|(_, job)| self.is_wanted(job));
        let left: Vec<_> = left.map(|(id, job)| (id, job.clone())).collect();
        self.jobs.extend(left);
        self
    }

    /// The jobs in order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = &JobHistory> {
        self.jobs.values()
    }

    /// The window in which they are all there is: from the first submission, or what was asked for,
    /// to the submission of the first job that is one too many, else to their end.
    #[must_use]
    pub fn window(&self) -> (Time, Time) {
        let (from, until) = self.wanted;
        let until = until.min(self.cut.map_or(self.last, |(_, at)| at));
        (from.max(self.first.unwrap_or(Time::ZERO)), until)
    }

    /// The number of jobs in the window that was asked for, if these are not all of them.
    #[must_use]
    pub const fn cut_from(&self) -> Option<usize> {
        if self.cut.is_some() { Some(self.seen) } else { None }
    }
}
