//! The tasks that wait for a VM, the most urgent first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dormouse_model::StartReason;
use dormouse_units::{Span, TaskId, Time};

use super::last_moments::LastMoments;

/// Place of a task in the queue: by the last moment at which it may start on a spot VM, then by its
/// length.
type QueuePlace = (Time, Reverse<Span>, TaskId);

/// The waiting tasks, each with the reason for which it will be started.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingTasks {
    queue: BTreeMap<QueuePlace, StartReason>,
}

impl WaitingTasks {
    fn place(moments: &LastMoments, task: TaskId) -> QueuePlace {
        (moments.last_spot_start(task), moments.length_order(task), task)
    }

    pub(super) fn add_task(&mut self, moments: &LastMoments, task: TaskId, reason: StartReason) {
        self.queue.insert(Self::place(moments, task), reason);
    }

    /// Removes a task; `None` if it does not wait.
    pub(super) fn remove_task(
        &mut self,
        moments: &LastMoments,
        task: TaskId,
    ) -> Option<StartReason> {
        self.queue.remove(&Self::place(moments, task))
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// All waiting tasks, the most urgent first.
    pub(super) fn all(&self) -> impl Iterator<Item = TaskId> {
        self.queue.keys().map(|&(_, _, task)| task)
    }

    /// The tasks that may no longer start on a spot VM, the most urgent first.
    pub(super) fn urgent(&self, now: Time) -> impl Iterator<Item = TaskId> {
        let are_urgent = self.queue.keys().take_while(move |(last, ..)| *last <= now);
        are_urgent.map(|&(_, _, task)| task)
    }

    /// The tasks that may still start on a spot VM, the most urgent first.
    pub(super) fn patient(&self, now: Time) -> impl Iterator<Item = TaskId> {
        self.patient_places(now).map(|&(_, _, task)| task)
    }

    /// The next moment after which a waiting task may no longer start on a spot VM; `None` if there is
    /// none.
    pub(super) fn next_urgent(&self, now: Time) -> Option<Time> {
        self.patient_places(now).next().map(|&(last, ..)| last)
    }

    fn patient_places(&self, now: Time) -> impl Iterator<Item = &QueuePlace> {
        let first =
            (now + Span::from_micros(1), Reverse(Span::from_micros(u64::MAX)), TaskId::new(0));
        self.queue.range(first..).map(|(place, _)| place)
    }
}
