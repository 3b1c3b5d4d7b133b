//! Accounts of the CPU time that tasks and jobs were promised and got.

use dormouse_units::{Ppm, Tier};
use serde::{Deserialize, Serialize};

/// Account of an attempt: what it was promised and what it received, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLedger {
    /// Time from the command to the attempt's end that the attempt should have taken at its VM's speed, including
    /// holds, excluding time in which the VM was frozen and the transfer of the program's inputs. If the attempt did
    /// not finish: the time that it took.
    pub real_promised_us: u64,
    /// Time that the attempt took, with the same inclusions and exclusions as `real_promised_us`.
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
    /// Greatest CPU time by which the attempt was ahead of its promise.
    pub real_ahead_us: u64,
    /// Greatest CPU time by which the attempt was behind its promise.
    pub real_behind_us: u64,
    /// Time for which the worker stopped the attempt, for checkpoints and because it was ahead of its promise.
    pub real_stood_us: u64,
    /// Number of checkpoints that did not help the attempt: it ended before CRIU could take the checkpoint, or before
    /// the coordinator had received it. The attempt was stopped for these checkpoints nevertheless.
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
    /// CPU use of the job's processes: one entry for each process, vCPU, tier and state of the vCPU's other slot.
    pub uses: Vec<ProcessCpuUse>,
    /// Account over all processes of the job; `None` if the worker kept no account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<JobStartLedger>,
    /// Real microseconds by which the job ended later than due; negative: earlier. Its end is reported at the due time.
    pub real_late_us: i64,
}

/// Account of one start of a job over all its processes, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStartLedger {
    /// CPU time that the processes would have had on processors of exactly the emulated speed.
    pub due_us: u64,
    /// CPU time that the processes computed for.
    pub received_us: u64,
    /// CPU time charged to the processes' slots for anything but work: starts, dumps, restores, ends.
    pub beside_us: u64,
    /// Time for which the processes' quotas were lifted, for dumps.
    pub lifted_us: u64,
    /// Greatest CPU time by which a process was ahead of its due.
    pub ahead_us: u64,
    /// Greatest CPU time by which a process was behind its due.
    pub behind_us: u64,
}

/// CPU time of a process while its vCPU, its tier and the use of the vCPU's other slot stayed the same, in real
/// microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpuUse {
    /// Index of the process in its job, from 0.
    pub process: u32,
    /// The number of the vCPU that the process ran on.
    pub processor: u32,
    /// The tier of the process's slot.
    pub tier: Tier,
    /// True if the vCPU's other slot was occupied too.
    pub shared: bool,
    /// Time for which the process ran in these conditions.
    pub wall_us: u64,
    /// Part of `wall_us` in which the process wanted to compute.
    pub wanted_us: u64,
    /// CPU time promised to the process for `wanted_us`, by the processor's share of a core.
    pub promised_us: u64,
    /// CPU time that the process received.
    pub cpu_us: u64,
    /// Greatest total time for which a neighbour that had just used up the processor may have
    /// delayed the process.
    pub may_wait_us: u64,
}
