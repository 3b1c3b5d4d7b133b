//! CPU time that a task of one process is promised and receives.

use std::time::Duration;

use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::TaskLedger;

use crate::{agent::vm::attempt::VmAttempt, cgroup::TierSlot};

/// CPU time charged to an attempt's slot, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotCharges {
    /// CPU time charged to the slot before the attempt, in nanoseconds.
    pub(crate) base: u64,
    /// CPU time charged during the attempt's start, in nanoseconds.
    pub(crate) birth: u64,
    /// CPU time charged for CRIU's work on the task, in nanoseconds: around the task in its restore, and inside the task in dumps.
    pub(crate) criu: u64,
}

/// Time that a task of one process is promised by its VM's model, and time that it received.
#[derive(Debug)]
pub(crate) struct TaskPromise {
    /// Time at which the attempt's start was decided, on the VM's clock.
    pub(crate) began: Time,
    pub(crate) skipped: Span,
    /// Slot of the task from its launch on.
    pub(crate) slot: TierSlot,
    /// Share of a host core that is the task's full speed, in ppm.
    pub(crate) share: u32,
    pub(crate) charges: SlotCharges,
    pub(crate) ledger: TaskLedger,
    /// CPU time of the work that the checkpoint held with which the attempt began, in nanoseconds.
    pub(crate) came_with: u64,
    /// Ratio of the present quota to the quota for the task's speed; above one while the task catches up.
    pub(crate) times: Ppm,
    /// Real time that the attempt should have taken; `None` until that time has passed.
    pub(crate) promised: Option<Duration>,
    /// Emulated time that the attempt should have taken, including hibernations; `None` until that time has passed.
    pub(crate) after: Option<Span>,
    /// CPU time that the attempt should have worked, in nanoseconds; `None` until that is final.
    pub(crate) final_promise: Option<u64>,
}

impl TaskPromise {
    /// Returns the CPU time of the work that the task has done, in nanoseconds.
    pub(crate) fn worked_time(&self, attempt: &VmAttempt) -> u64 {
        if let Some(own) = &attempt.own {
            return own.worked;
        }
        self.ledger.part_of_work(Ppm::new(attempt.done_ppm()))
    }
}
