//! Accounts of what tasks and jobs were promised and got.

use dormouse_units::{Ppm, Tier};
use serde::{Deserialize, Serialize};

/// Account of what an attempt was promised and got. Times are real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// How long the attempt should have taken from the command to its end at the speed of its VM,
    /// holds included and the time its VM was frozen left out, as well as the time until the inputs
    /// of its program had come. If it did not finish: how long it took.
    pub real_promised_us: u64,
    /// How long the attempt took, counted likewise.
    pub real_took_us: u64,
    /// CPU time that the attempt should have worked by its end.
    pub real_promised_work_us: u64,
    /// CPU time that the attempt has worked, as it says itself.
    pub real_worked_us: u64,
    /// CPU time that was charged for the attempt in all.
    pub real_charged_us: u64,
    /// Part of the charged CPU time that went into the attempt's birth.
    pub real_birth_us: u64,
    /// Part of the charged CPU time that CRIU used: inside the attempt in dumps, around it in its
    /// restore.
    pub real_criu_us: u64,
    /// The most that the attempt was ever seen ahead of its promise, in CPU time.
    pub real_ahead_us: u64,
    /// The most that the attempt was ever seen behind its promise, in CPU time.
    pub real_behind_us: u64,
    /// How long the attempt stood still, for checkpoints and for what it was ahead.
    pub real_stood_us: u64,
    /// Number of checkpoints that came too late for the attempt: CRIU's turn came after its end, or they were still
    /// on their way to the coordinator then. It stood still for them all the same.
    pub missed_checkpoints: u32,
    /// CPU time of the whole work of the attempt's task.
    pub real_whole_work_us: u64,
    /// The most CPU time that the kernel gives out at a time under the attempt's quota.
    pub real_slice_us: u64,
}

/// Account of what a start of a parallel job was due and got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAccount {
    /// Part of the job's work that was done.
    pub done: Ppm,
    /// CPU use of the job's processes, one entry per process and situation.
    pub uses: Vec<ProcessUse>,
    /// Account over all processes; `None` where nobody kept count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<JobLedger>,
    /// How much later than due the job really ended, in real microseconds; negative: earlier. Its
    /// end is heard of when it is due.
    pub real_late_us: i64,
}

/// Account of what a start of a job was due and got, over all its processes, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLedger {
    /// CPU time that the job's processes would have had on processors of exactly the emulated
    /// speed.
    pub due_us: u64,
    /// CPU time for which the processes computed.
    pub received_us: u64,
    /// Other CPU time that was charged to the processes' slots: births, dumps, restores, ends.
    pub beside_us: u64,
    /// How long the processes' quotas were lifted, for dumps.
    pub lifted_us: u64,
    /// Time by which a process was ahead of what it was due, at worst.
    pub ahead_us: u64,
    /// Time by which a process was behind, at worst.
    pub behind_us: u64,
}

/// CPU time that a process got on a processor in one situation, in real microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The number of the process in its job.
    pub process: u32,
    /// The number of the vCPU.
    pub processor: u32,
    /// The tier of the process's slot.
    pub tier: Tier,
    /// Whether the processor's other slot was taken, too.
    pub shared: bool,
    /// How long the process was in this situation.
    pub wall_us: u64,
    /// For how much of `wall_us` the process wanted to compute.
    pub wanted_us: u64,
    /// CPU time that the processor's share of a core promises the process for `wanted_us`.
    pub promised_us: u64,
    /// CPU time that the process got.
    pub cpu_us: u64,
    /// How long the process may have been kept waiting in all by a neighbour that had just used up
    /// their processor.
    pub may_wait_us: u64,
}
