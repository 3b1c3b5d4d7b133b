//! Jobs without a foreground and jobs with one, each in the order in which a pass needs them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dormouse_units::{Span, Time};

use dormouse_units::TaskId;

/// A job that has no foreground: waiting or in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedJob {
    pub(crate) id: TaskId,
    pub(crate) processes: u32,
    pub(crate) estimate: Span,
    /// Priority of the job; 0 for all jobs under a scheduler that heeds none.
    pub(crate) priority: i64,
}

impl QueuedJob {
    /// Place of the job in the queue: by priority, the greatest first, then by submission.
    pub(crate) const fn rank(&self) -> JobRank {
        (Reverse(self.priority), self.id)
    }
}

/// Key by which the queue of parallel jobs is sorted: the greatest priority first, then by submission.
pub(crate) type JobRank = (Reverse<i64>, TaskId);

/// Waiting jobs ordered by estimate, then by submission: the order of SJF.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShortestFirst(BTreeSet<(Span, TaskId, u32)>);

impl ShortestFirst {
    pub(crate) fn add(&mut self, c: &QueuedJob) {
        self.0.insert((c.estimate, c.id, c.processes));
    }

    pub(crate) fn remove(&mut self, c: &QueuedJob) {
        self.0.remove(&(c.estimate, c.id, c.processes));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The jobs to put into `room` free background VMs: shortest estimate first, skipping those
    /// that no longer fit beside the ones before them.
    pub(crate) fn jobs_that_fit(&self, mut room: usize) -> Vec<(TaskId, u32)> {
        let mut chosen = Vec::new();
        for &(_, id, processes) in &self.0 {
            if room == 0 {
                break;
            }
            if processes as usize <= room {
                room -= processes as usize;
                chosen.push((id, processes));
            }
        }
        chosen
    }
}

impl<'a> FromIterator<&'a QueuedJob> for ShortestFirst {
    fn from_iter<I: IntoIterator<Item = &'a QueuedJob>>(candidates: I) -> Self {
        Self(candidates.into_iter().map(|c| (c.estimate, c.id, c.processes)).collect())
    }
}

/// A job in the foreground, and the time at which the job is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExpectedEnding {
    pub(crate) at: Time,
    pub(crate) id: TaskId,
    pub(crate) processes: u32,
}

/// Foreground jobs in the order in which they are expected to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedEndings(Vec<ExpectedEnding>);

impl ExpectedEndings {
    pub(crate) fn add(&mut self, ending: ExpectedEnding) {
        let at = self.0.partition_point(|e| *e < ending);
        self.0.insert(at, ending);
    }

    pub(crate) fn remove(&mut self, ending: ExpectedEnding) {
        if let Ok(at) = self.0.binary_search(&ending) {
            self.0.remove(at);
        }
    }

    pub(crate) fn in_order(&self) -> &[ExpectedEnding] {
        &self.0
    }
}
