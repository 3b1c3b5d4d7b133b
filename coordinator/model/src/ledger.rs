//! What tasks and jobs were promised and got.

use dormouse_units::{Ppm, Tier};
use serde::{Deserialize, Serialize};

/// What an attempt was promised and got, real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// How long it should have taken from the command to its end at the speed of its VM, holds
    /// included and the time its VM was frozen left out. Of one that did not finish: how long it
    /// took.
    pub real_promised_us: u64,
    /// How long it took, likewise.
    pub real_took_us: u64,
    /// CPU time that it should have worked by its end.
    pub real_promised_work_us: u64,
    /// CPU time that it has worked, as it says itself.
    pub real_worked_us: u64,
    /// CPU time that was charged for it in all.
    pub real_charged_us: u64,
    /// What of that went into its birth.
    pub real_birth_us: u64,
    /// What of that was CRIU's, inside it in dumps and around it in its restore.
    pub real_criu_us: u64,
    /// The most that it was ever seen ahead of its promise, in CPU time.
    pub real_ahead_us: u64,
    /// The most that it was ever seen behind.
    pub real_behind_us: u64,
    /// How long it stood still.
    pub real_stood_us: u64,
    /// Checkpoints that it was too late for; it has stood still for them all the same.
    pub missed_checkpoints: u32,
    /// CPU time of all of its task's work.
    pub real_whole_work_us: u64,
    /// The most CPU time that the kernel gave out at a time under its quota.
    pub real_slice_us: u64,
}

/// What a start of a parallel job was due and got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAccount {
    /// What of its work was done.
    pub done: Ppm,
    /// What its processes got.
    pub uses: Vec<ProcessUse>,
    /// What it was due and got in all; `None` where nobody kept count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<JobLedger>,
    /// How much later than due, which is when it is heard of, it really ended, in real
    /// microseconds; below zero: earlier.
    pub real_late_us: i64,
}

/// What a start of a job was due and got, over all its processes. Real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLedger {
    /// CPU time that its processes would have had on processors of just their speed.
    pub due_us: u64,
    /// CPU time for which they computed.
    pub received_us: u64,
    /// CPU time that their slots were charged beside that: births, dumps, restores, ends.
    pub beside_us: u64,
    /// How long their quotas were lifted.
    pub lifted_us: u64,
    /// Time by which a process was ahead of what it was due, at worst.
    pub ahead_us: u64,
    /// Time by which a process was behind, at worst.
    pub behind_us: u64,
}

/// What a process got on a processor in one situation. Times are real microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The number of the process in its job.
    pub process: u32,
    /// The number of the vCPU.
    pub processor: u32,
    /// In which slot.
    pub tier: Tier,
    /// The processor's other slot was taken, too.
    pub shared: bool,
    /// How long it was in this situation.
    pub wall_us: u64,
    /// For how much of that it wanted to compute.
    pub wanted_us: u64,
    /// How much CPU time its processor promises it for that.
    pub promised_us: u64,
    /// How much it got.
    pub cpu_us: u64,
    /// How long it may have been kept waiting in all by a neighbour that had just used up their
    /// processor.
    pub may_wait_us: u64,
}
