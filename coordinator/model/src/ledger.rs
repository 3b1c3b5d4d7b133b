//! What the workers of a live run measure: each attempt at a task, and the load of their hosts.

use dormouse_units::{Ppm, Tier};
use serde::{Deserialize, Serialize};

/// Account of an attempt: what it was promised and what it received, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLedger {
    /// Time from the command to the attempt's end that the attempt should have taken at its VM's speed, with stops for checkpoints.
    /// Not counted are the transfer of the program's inputs and time in which the VM was frozen. If the attempt did not finish: the
    /// time that it took.
    pub real_promised_us: u64,
    /// Time that the attempt took, in real microseconds, with the same inclusions and exclusions as `real_promised_us`.
    pub real_took_us: u64,
    /// CPU time of the work that the attempt should have done by its end, in real microseconds.
    pub real_promised_work_us: u64,
    /// CPU time of the work that the attempt reports as done, in real microseconds.
    pub real_worked_us: u64,
    /// Total CPU time charged for the attempt, in real microseconds.
    pub real_charged_us: u64,
    /// Part of the charged CPU time used for starting the attempt, in real microseconds.
    pub real_birth_us: u64,
    /// Part of the charged CPU time used by CRIU, in real microseconds: inside the attempt in dumps, outside in its restore.
    pub real_criu_us: u64,
    /// Greatest CPU time by which the attempt was ahead of its promise, in real microseconds.
    pub real_ahead_us: u64,
    /// Greatest CPU time by which the attempt was behind its promise, in real microseconds.
    pub real_behind_us: u64,
    /// Time for which the worker stopped the attempt, for checkpoints and because it was ahead of its promise, in real
    /// microseconds.
    pub real_stood_us: u64,
    /// Number of checkpoints that did not help the attempt: it ended before CRIU could take the checkpoint, or before
    /// the coordinator had received it. The attempt was stopped for these checkpoints nevertheless.
    pub missed_checkpoints: u32,
    /// CPU time of the whole work of the attempt's task, in real microseconds.
    pub real_whole_work_us: u64,
    /// Longest CPU time that the kernel grants at once under the attempt's quota, in real microseconds.
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
    /// CPU time that the processes would have had on processors of exactly the emulated speed, in real microseconds.
    pub due_us: u64,
    /// CPU time that the processes computed for, in real microseconds.
    pub received_us: u64,
    /// CPU time charged to the processes' slots for anything but work (starts, dumps, restores, ends), in real microseconds.
    pub beside_us: u64,
    /// Time for which the processes' quotas were lifted for dumps, in real microseconds.
    pub lifted_us: u64,
    /// Greatest CPU time by which a process was ahead of exactly the emulated speed, in real microseconds.
    pub ahead_us: u64,
    /// Greatest CPU time by which a process was behind exactly the emulated speed, in real microseconds.
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
    /// Time for which the process ran with this vCPU, tier and use of the other slot, in real microseconds.
    pub wall_us: u64,
    /// Part of `wall_us` in which the process wanted to compute, in real microseconds.
    pub wanted_us: u64,
    /// CPU time promised to the process for `wanted_us`, by the processor's share of a core, in real microseconds.
    pub promised_us: u64,
    /// CPU time that the process received, in real microseconds.
    pub cpu_us: u64,
    /// Greatest total time, in real microseconds, for which another process that had just used up the processor's
    /// time may have delayed this process.
    pub may_wait_us: u64,
}

/// Load of a host since its worker was welcomed, in real microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Time since the worker was welcomed, in real microseconds.
    pub elapsed_us: u64,
    /// Cores that the worker may use, in thousandths; a quota may allow less.
    pub millicores: u32,
    /// Busy time since the worker was welcomed, summed over the cores, in real microseconds.
    pub busy_us: u64,
    /// Part of `busy_us` that the worker used, with its VMs and CRIU, in real microseconds.
    pub ours_us: u64,
    /// Identity of the running kernel, which workers on the same machine share.
    pub machine: String,
}
