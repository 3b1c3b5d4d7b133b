//! Accounts of the CPU time that tasks and jobs were promised and got.

use dormouse_units::{Ppm, Tier};
use serde::{Deserialize, Serialize};

/// Account of an attempt: what it was promised and what it got, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLedger {
    /// Time that the attempt should have taken from the command to its end at its VM's speed,
    /// including holds, without time in which the VM was frozen and without the transfer of the
    /// program's inputs. If it did not finish: the time it took.
    pub real_promised_us: u64,
    /// Time that the attempt took, counted likewise.
    pub real_took_us: u64,
    /// CPU time of work that the attempt should have done by its end.
    pub real_promised_work_us: u64,
    /// CPU time of work that the attempt reports as done.
    pub real_worked_us: u64,
    /// CPU time charged for the attempt in all.
    pub real_charged_us: u64,
    /// Part of the charged CPU time used for starting the attempt.
    pub real_birth_us: u64,
    /// Part of the charged CPU time used by CRIU: inside the attempt in dumps, outside in its
    /// restore.
    pub real_criu_us: u64,
    /// Greatest lead of the attempt over its promise, in CPU time.
    pub real_ahead_us: u64,
    /// Greatest lag of the attempt behind its promise, in CPU time.
    pub real_behind_us: u64,
    /// Time for which the attempt was held, for checkpoints and because it was ahead.
    pub real_stood_us: u64,
    /// Number of checkpoints that missed the attempt: CRIU's turn came after its end, or they had
    /// not reached the coordinator by then. The attempt stood still for them all the same.
    pub missed_checkpoints: u32,
    /// CPU time of the whole work of the attempt's task.
    pub real_whole_work_us: u64,
    /// Longest CPU time that the kernel grants at once under the attempt's quota.
    pub real_slice_us: u64,
}

/// Account of one start of a parallel job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStartAccount {
    /// Part of the job's work done by this start.
    pub done: Ppm,
    /// CPU use of the job's processes, one entry per process and situation.
    pub uses: Vec<ProcessCpuUse>,
    /// Account over all processes; `None` if none was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<JobStartLedger>,
    /// Delay of the job's end against its due time, in real microseconds; negative: early. The end
    /// is reported at the due time.
    pub real_late_us: i64,
}

/// Account of one start of a job over all its processes, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStartLedger {
    /// CPU time that the processes would have had on processors of exactly the emulated speed.
    pub due_us: u64,
    /// CPU time that the processes computed for.
    pub received_us: u64,
    /// Other CPU time charged to the processes' slots: starts, dumps, restores, ends.
    pub beside_us: u64,
    /// Time for which the processes' quotas were lifted, for dumps.
    pub lifted_us: u64,
    /// Greatest CPU time by which a process was ahead of what it was due.
    pub ahead_us: u64,
    /// Greatest lag of a process behind its due.
    pub behind_us: u64,
}

/// CPU time of a process on a processor in one situation, in real microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpuUse {
    /// Index of the process in its job.
    pub process: u32,
    /// The number of the vCPU.
    pub processor: u32,
    /// The tier of the process's slot.
    pub tier: Tier,
    /// True if the processor's other slot was taken too.
    pub shared: bool,
    /// Duration of the situation.
    pub wall_us: u64,
    /// Part of `wall_us` in which the process wanted to compute.
    pub wanted_us: u64,
    /// CPU time promised to the process for `wanted_us`, by the processor's share of a core.
    pub promised_us: u64,
    /// CPU time that the process got.
    pub cpu_us: u64,
    /// Greatest total time for which a neighbour that had just used up the processor may have
    /// delayed the process.
    pub may_wait_us: u64,
}
