//! The orders and attempts of one VM that are outstanding.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_units::{Attempt, Bytes, Cpus, Seats, TaskId, Tier, Time};

use super::order::WorkerOrder;

/// An order that has no answer yet.
#[derive(Debug)]
pub(super) struct OpenOrder {
    /// The command's number among those that its worker was told.
    pub(super) number: u64,
    /// The real time for which it has had no answer.
    pub(super) waited: Duration,
    /// The instant at which it was decided on, if it is carried out as soon as it comes: its end is of that instant.
    pub(super) at_once: Option<Time>,
    /// The vCPUs that a task is moved to; `None` for every other order.
    pub(super) to: Option<Cpus>,
}

/// An attempt that is on a VM, or is to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnVm {
    pub(super) memory: Bytes,
    /// The instant at which its start was decided on.
    pub(super) decided: Time,
    /// The last report of it is of this instant: what comes later is not of an earlier one.
    pub(super) heard: Time,
}

/// What one VM has been told and has not said.
#[derive(Debug, Default)]
pub(super) struct OutstandingVm {
    /// Parallel jobs share its processors in two tiers: nobody waits until one of them has been killed.
    pub(super) is_two_tier: bool,
    pub(super) is_frozen: bool,
    pub(super) orders: BTreeMap<WorkerOrder, OpenOrder>,
    pub(super) attempts: BTreeMap<(TaskId, Attempt), OnVm>,
    /// The last balance of its credits is of this instant: one that comes after it is not of an earlier one.
    pub(super) balance: Time,
}

impl OutstandingVm {
    /// The orders to an attempt that is over.
    pub(super) fn orders_to(of: (TaskId, Attempt)) -> [WorkerOrder; 4] {
        let (task, attempt) = of;
        [
            WorkerOrder::Start(task, attempt),
            WorkerOrder::Stop(task, attempt),
            WorkerOrder::Promote(task, attempt),
            WorkerOrder::Move(task, attempt),
        ]
    }

    /// The orders that are done with the beginning of an attempt: one that was promoted, or moved, before it
    /// began may have begun where it was to go, and one that has begun elsewhere owes it yet. `began` is the
    /// place that its worker says; `None`: the worker says none.
    pub(super) fn done_with_beginning(
        &self,
        (task, attempt): (TaskId, Attempt),
        began: Option<&Seats>,
    ) -> impl Iterator<Item = WorkerOrder> + use<> {
        let is_up = began.is_none_or(|at| at.tier == Tier::Foreground);
        let moved = WorkerOrder::Move(task, attempt);
        let to = self.orders.get(&moved).and_then(|open| open.to.as_ref());
        let is_there = is_up && began.is_none_or(|at| Some(&at.cpus) == to);
        let promoted = is_up.then_some(WorkerOrder::Promote(task, attempt));
        let there = is_there.then_some(moved);
        [Some(WorkerOrder::Start(task, attempt)), promoted, there].into_iter().flatten()
    }
}
