//! The parallel jobs that a chart shows: those of a window of time, or the first of them if they
//! are too many.

use std::collections::BTreeMap;

use dormouse_units::{TaskId, Time};

use crate::{JobHistory, RecordChange, RunRecord};

/// Greatest number of jobs on a chart: a page with more is too large to look at.
pub const MOST_DRAWN: usize = 2_000;

/// Collects the jobs that are in the system at some time of a window. Call [`Self::see`] after each
/// step, at the end [`Self::with_the_rest`].
#[derive(Clone, Debug)]
pub struct JobsOfWindow {
    /// Jobs that have ended; at the end of the record also jobs that have not ended.
    jobs: BTreeMap<TaskId, JobHistory>,
    /// The requested window: its beginning and its end.
    wanted: (Time, Time),
    /// Submission time of the first job; `None` before any submission.
    first: Option<Time>,
    /// Number of jobs submitted in the window.
    seen: usize,
    /// The first job that is left out because [`MOST_DRAWN`] are drawn, with its submission time; `None` if no job is left out.
    cut: Option<(TaskId, Time)>,
    /// Latest submission or end of a job that the chart shows.
    last: Time,
}

impl Default for JobsOfWindow {
    fn default() -> Self {
        Self::within((Time::ZERO, Time::from_micros(u64::MAX)))
    }
}

impl JobsOfWindow {
    /// An empty chart of the jobs in the window `wanted`, from one time to another.
    #[must_use]
    pub const fn within(wanted: (Time, Time)) -> Self {
        Self { jobs: BTreeMap::new(), wanted, first: None, seen: 0, cut: None, last: Time::ZERO }
    }

    /// Adds what the last step of a record changed.
    pub fn see(&mut self, record: &RunRecord) {
        for change in record.changes() {
            if let RecordChange::JobHeard(id) = *change {
                self.add_submitted(record.now, id);
            }
        }
        for job in &record.closed().jobs {
            self.add_ended(record.now, job);
        }
    }

    fn add_submitted(&mut self, now: Time, id: TaskId) {
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

    fn add_ended(&mut self, now: Time, job: &JobHistory) {
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

    /// Adds the jobs that have not ended in the complete record.
    #[must_use]
    pub fn with_the_rest(mut self, record: &RunRecord) -> Self {
        let left = record.jobs.iter().filter(|(_, job)| self.is_wanted(job));
        let left: Vec<_> = left.map(|(id, job)| (id, job.clone())).collect();
        self.jobs.extend(left);
        self
    }

    /// The collected jobs, in order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = &JobHistory> {
        self.jobs.values()
    }

    /// The window in which the chart shows all jobs. It begins with the first submission, or at the
    /// requested time, and ends with the submission of the first job that is left out, or else with
    /// the last end.
    #[must_use]
    pub fn window(&self) -> (Time, Time) {
        let (from, until) = self.wanted;
        let until = until.min(self.cut.map_or(self.last, |(_, at)| at));
        (from.max(self.first.unwrap_or(Time::ZERO)), until)
    }

    /// Number of jobs in the requested window, if some of them are left out; `None` if all are shown.
    #[must_use]
    pub const fn cut_from(&self) -> Option<usize> {
        if self.cut.is_some() { Some(self.seen) } else { None }
    }
}
