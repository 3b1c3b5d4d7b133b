//! What is to happen when, in a total order.

use std::collections::BTreeMap;

use dormouse_cloud::Interruption;
use dormouse_units::{Attempt, TaskId, Time, VmId};

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunTimer {
    /// A VM has booted.
    Boot(VmId),
    /// A VM's notice of preemption has run out.
    Kill(VmId),
    /// A VM that hibernated to make room can be resumed from now on.
    Resume(VmId),
    /// A task's checkpointing scheme wants a checkpoint of this attempt, by its `turn`-th answer.
    Checkpoint { task: TaskId, attempt: Attempt, turn: u32 },
    /// A task's checkpointing scheme wants to look again, by its `turn`-th answer.
    Look { task: TaskId, attempt: Attempt, turn: u32 },
    /// A task of a workflow is submitted, and all is done that it follows.
    Due(TaskId),
    /// The scheduler asked to be woken.
    Wake(u64),
}

/// Something whose time has come.
pub(crate) enum DueEvent {
    Timer(RunTimer),
    Interruption(Interruption),
    /// A price is another.
    Prices,
    /// Another number of spot VMs can be had.
    Availability,
}

/// Timers by (time, order of asking).
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    queue: BTreeMap<(Time, u64), RunTimer>,
    asked: u64,
}

impl TimerQueue {
    pub(crate) fn set_timer(&mut self, at: Time, timer: RunTimer) {
        self.queue.insert((at, self.asked), timer);
        self.asked += 1;
    }

    /// All that are set, in order.
    pub(crate) fn all_timers(&self) -> impl Iterator<Item = RunTimer> {
        self.queue.values().copied()
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.first_key_value().map(|(&(at, _), _)| at)
    }

    /// The next timer due by `now`.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<RunTimer> {
        let first = self.queue.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
