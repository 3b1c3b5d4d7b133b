//! The orders and attempts of one VM that are outstanding.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_units::{Attempt, Bytes, Cpus, Seats, TaskId, Tier, Time};

use super::order::WorkerOrder;

/// A command without an answer.
#[derive(Debug)]
pub(super) struct OpenOrder {
    /// Number of the command among the commands to its worker.
    pub(super) number: u64,
    /// Real time for which the command has been without an answer.
    pub(super) waited: Duration,
    /// Instant at which the command was decided, if it takes effect on arrival: the effect has that instant.
    pub(super) at_once: Option<Time>,
    /// vCPUs to which a task is moved; `None` for all other commands.
    pub(super) to: Option<Cpus>,
}

/// An attempt on a VM, or whose start is on its way to the VM.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnVm {
    pub(super) memory: Bytes,
    /// Instant at which the attempt's start was decided.
    pub(super) decided: Time,
    /// Instant of the attempt's last report; no later report gets an earlier instant.
    pub(super) heard: Time,
}

/// Unanswered commands to one VM, and the VM's attempts.
#[derive(Debug, Default)]
pub(super) struct OutstandingVm {
    /// True if parallel jobs share the VM's processors in two tiers, so that no job waits until another one is killed.
    pub(super) is_two_tier: bool,
    pub(super) is_frozen: bool,
    pub(super) orders: BTreeMap<WorkerOrder, OpenOrder>,
    pub(super) attempts: BTreeMap<(TaskId, Attempt), OnVm>,
    /// Instant of the last credit balance; no later balance gets an earlier instant.
    pub(super) balance: Time,
}

impl OutstandingVm {
    /// Returns the commands to an attempt that has ended.
    pub(super) fn orders_to(of: (TaskId, Attempt)) -> [WorkerOrder; 4] {
        let (task, attempt) = of;
        [
            WorkerOrder::Start(task, attempt),
            WorkerOrder::Stop(task, attempt),
            WorkerOrder::Promote(task, attempt),
            WorkerOrder::Move(task, attempt),
        ]
    }

    /// Returns the commands that the beginning of an attempt answers. An attempt that was promoted or moved before it
    /// began may have begun at the new place; if it began elsewhere, the command is still unanswered. `began` is the
    /// place that the worker reports.
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
