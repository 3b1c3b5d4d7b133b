//! Tasks and parallel jobs of a picture: the waiting, running and done ones.

use std::collections::{BTreeMap, VecDeque};

use dormouse_model::Setup;
use dormouse_units::{TaskId, Time};

/// Tasks, parallel jobs and requests of a run at a moment.
#[derive(Debug, Default)]
pub(super) struct PictureWork {
    /// Tasks of the bag that are not submitted yet, in order of time.
    to_come: VecDeque<(Time, TaskId)>,
    /// Tasks that are on a VM, with their vCPUs.
    running: BTreeMap<TaskId, Vec<u32>>,
    /// Number of requests that have a VM.
    served: u64,
    waiting: u64,
    done: u64,
    failed: u64,
    terminated: u64,
}

/// Number of tasks that wait, run, are done, and have failed for good. A request failed if it was refused; if its VM ended
/// too early, it was terminated: the words of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkCounts {
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) terminated: u64,
}

/// State of a task that leaves its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaveOutcome {
    /// The task waits for its next attempt.
    Open,
    /// The task is done.
    Done,
    /// The task's program failed, and is not tried again.
    Failed,
}

impl PictureWork {
    /// The work of a bag before any submission.
    pub(super) fn new(setup: &Setup) -> Self {
        let ids = (0..setup.bag.tasks.len()).filter_map(|n| u32::try_from(n).ok());
        let mut to_come: Vec<_> =
            ids.map(TaskId::new).map(|task| (setup.submission_time(task), task)).collect();
        to_come.sort_unstable();
        Self { to_come: to_come.into(), ..Self::default() }
    }

    /// Removes the next task of the bag that is submitted by `now`, and counts it as waiting; `None` if there is none.
    pub(super) fn next_by(&mut self, now: Time) -> Option<(Time, TaskId)> {
        let due = self.to_come.pop_front_if(|(at, _)| *at <= now)?;
        self.waiting += 1;
        Some(due)
    }

    /// Adds a job or request that waits.
    pub(super) const fn came(&mut self) {
        self.waiting += 1;
    }

    /// Moves a request from waiting to served.
    pub(super) const fn granted(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.served += 1;
    }

    /// Closes a request whose VM has ended, after the whole requested time (`is_done`) or before.
    pub(super) const fn request_ended(&mut self, is_done: bool) {
        self.served = self.served.saturating_sub(1);
        *(if is_done { &mut self.done } else { &mut self.terminated }) += 1;
    }

    /// Counts a refused request as failed: its customer doesn't request it again.
    pub(super) const fn request_refused(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.failed += 1;
    }

    /// Puts a task on the given vCPUs of a VM.
    pub(super) fn starts(&mut self, task: TaskId, cpus: Vec<u32>) {
        if self.running.insert(task, cpus).is_none() {
            self.waiting = self.waiting.saturating_sub(1);
        }
    }

    /// The vCPUs of a task while it is on a VM; `None` if it is not on a VM.
    pub(super) fn cpus(&self, task: TaskId) -> Option<&[u32]> {
        self.running.get(&task).map(Vec::as_slice)
    }

    /// Takes a task off its VM; false if the task was on none.
    pub(super) fn leaves(&mut self, task: TaskId, left: LeaveOutcome) -> bool {
        let was_there = self.running.remove(&task).is_some();
        let count = match left {
            LeaveOutcome::Open => &mut self.waiting,
            LeaveOutcome::Done => &mut self.done,
            LeaveOutcome::Failed => &mut self.failed,
        };
        *count += u64::from(was_there);
        was_there
    }

    pub(super) fn tally(&self) -> WorkCounts {
        let running = self.running.len() as u64 + self.served;
        WorkCounts {
            waiting: self.waiting,
            running,
            done: self.done,
            failed: self.failed,
            terminated: self.terminated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four requests: one is refused, one has a running VM, one had its VM for the whole time, and one lost its VM
    /// earlier.
    #[test]
    fn a_request_that_was_not_served_is_not_done() {
        let mut work = PictureWork::default();
        (0..4).for_each(|_| work.came());
        work.request_refused();
        (0..3).for_each(|_| work.granted());
        work.request_ended(true);
        work.request_ended(false);
        assert_eq!(
            work.tally(),
            WorkCounts { waiting: 0, running: 1, done: 1, failed: 1, terminated: 1 }
        );
    }
}
