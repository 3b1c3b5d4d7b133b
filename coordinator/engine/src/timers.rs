//! The timers of a run, in a total order.

use std::collections::BTreeMap;

use dormouse_cloud::Interruption;
use dormouse_units::{Attempt, TaskId, Time, VmId};

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunTimer {
    /// The boot time of a VM is over.
    Boot(VmId),
    /// The notice of a preempted VM has run out.
    Kill(VmId),
    /// A VM that hibernated to make room may be resumed from now on.
    Resume(VmId),
    /// A checkpoint of an attempt is due, at the time that the attempt's checkpointing scheme set in its answer number
    /// `turn`.
    Checkpoint { task: TaskId, attempt: Attempt, turn: u32 },
    /// The checkpointing scheme of an attempt must be asked again, as the scheme requested in its answer number `turn`.
    Look { task: TaskId, attempt: Attempt, turn: u32 },
    /// A task of a workflow is submitted, all of its predecessors having finished.
    Due(TaskId),
    /// A wake-up that the scheduler requested.
    Wake(u64),
}

/// A kind of event that is due in a run.
pub(crate) enum DueEvent {
    Timer(RunTimer),
    Interruption(Interruption),
    /// A price changes.
    Prices,
    /// The number of available spot VMs changes.
    Availability,
}

/// Timers ordered by time; of timers with equal times, the one set first comes first.
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

    /// Returns all timers in order.
    pub(crate) fn all_timers(&self) -> impl Iterator<Item = RunTimer> {
        self.queue.values().copied()
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes the next timer that is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<RunTimer> {
        let first = self.queue.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
