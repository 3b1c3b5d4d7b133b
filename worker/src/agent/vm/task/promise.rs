//! What a task of one process is held to.

use std::time::Duration;

use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::TaskLedger;

use crate::{agent::vm::attempt::VmAttempt, cgroup::TierSlot};

/// CPU time, in nanoseconds, that an attempt's slot was charged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotCharges {
    /// Before the attempt.
    pub(crate) base: u64,
    /// CPU time of the attempt's birth.
    pub(crate) birth: u64,
    /// By CRIU: around it, in its restore, and inside it, in dumps.
    pub(crate) criu: u64,
}

/// What a task is promised by the model of its VM, and what it came to.
#[derive(Debug)]
pub(crate) struct TaskPromise {
    /// The time at which its start was decided on, on its VM's clock, and what that had skipped by then.
    pub(crate) began: Time,
    pub(crate) skipped: Span,
    /// The place where it is, from its launch on.
    pub(crate) slot: TierSlot,
    /// The share of a host core that is its full speed, in ppm.
    pub(crate) share: u32,
    pub(crate) charges: SlotCharges,
    pub(crate) ledger: TaskLedger,
    /// CPU time of the work that it came with, in nanoseconds.
    pub(crate) came_with: u64,
    /// The ratio of the quota to that of the task's speed; above one to catch up.
    pub(crate) times: Ppm,
    /// In how long it should have finished, once that has passed.
    pub(crate) promised: Option<Duration>,
    /// The same in emulated time, hibernations included.
    pub(crate) after: Option<Span>,
    /// CPU time that it should have worked, once that is final, in nanoseconds.
    pub(crate) final_promise: Option<u64>,
}

impl TaskPromise {
    /// CPU time of the work that is done, in nanoseconds.
    pub(crate) fn worked_time(&self, attempt: &VmAttempt) -> u64 {
        if let Some(own) = &attempt.own {
            return own.worked;
        }
        self.ledger.part_of_work(Ppm::new(attempt.done_ppm()))
    }
}
