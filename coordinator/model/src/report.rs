//! What machines report to a run.

use dormouse_units::{Attempt, Bytes, CheckpointSeq, Credits, Ppm, TaskId, Time, VmId};
use serde::{Deserialize, Serialize};

use crate::{JobAccount, Ledger};

/// What a machine reports. Durations called `real` are of real time, zero in virtual time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Report {
    /// The VM is there.
    VmCreated {
        /// The VM that was made.
        vm: VmId,
    },
    /// The VM is frozen.
    VmFrozen {
        /// The VM that was frozen.
        vm: VmId,
        /// From the command until it took effect, real microseconds.
        real_took_us: u64,
    },
    /// The VM runs again.
    VmThawed {
        /// The VM that was resumed.
        vm: VmId,
        /// From the command until it took effect, real microseconds.
        real_took_us: u64,
    },
    /// The VM is gone.
    VmDestroyed {
        /// The VM that is gone.
        vm: VmId,
    },
    /// The VM could not be made or kept.
    VmFailed {
        /// The VM that failed.
        vm: VmId,
        /// What went wrong, as one line for the log.
        why: String,
    },
    /// The task runs.
    TaskStarted {
        /// On which VM.
        vm: VmId,
        /// The task that has begun.
        task: TaskId,
        /// The attempt at it that has begun.
        attempt: Attempt,
        /// What of the work was done before.
        done: Ppm,
        /// From the command to the task's own first instruction, real microseconds.
        real_took_us: u64,
    },
    /// The task has done its work.
    TaskFinished {
        /// On which VM.
        vm: VmId,
        /// The task that is done.
        task: TaskId,
        /// The attempt that has done it.
        attempt: Attempt,
        /// Whether the task's answer is right.
        verified: bool,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
    },
    /// The attempt came to nothing.
    TaskFailed {
        /// On which VM.
        vm: VmId,
        /// The task that was attempted.
        task: TaskId,
        /// The attempt that failed.
        attempt: Attempt,
        /// What went wrong, as one line for the log.
        why: String,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
        /// Whether the worker had the checkpoint and could not restore it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        could_not_restore: bool,
    },
    /// The attempt was stopped as told.
    TaskStopped {
        /// On which VM.
        vm: VmId,
        /// The task that was stopped.
        task: TaskId,
        /// The attempt at it that is over.
        attempt: Attempt,
        /// The checkpoint that keeps it, and what of the work it holds.
        kept: Option<(CheckpointSeq, Ppm)>,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
    },
    /// A checkpoint is complete and stored.
    CheckpointTaken {
        /// On which VM.
        vm: VmId,
        /// The task that can be restarted from it.
        task: TaskId,
        /// The attempt that took it.
        attempt: Attempt,
        /// The number of the checkpoint.
        checkpoint: CheckpointSeq,
        /// What of the work it holds.
        done: Ppm,
        /// The size of the checkpoint.
        bytes: Bytes,
        /// How long the task stood still, real microseconds.
        real_held_us: u64,
        /// How much of that CRIU took, real microseconds.
        real_dump_us: u64,
        /// How long it had to stand still for its time to be what it was promised, real
        /// microseconds; zero in virtual time.
        #[serde(default)]
        real_owed_us: u64,
        /// CPU time that CRIU used inside the task, real microseconds.
        #[serde(default)]
        real_criu_us: u64,
        /// Since when a parallel job stood still, as its worker's clock has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_at: Option<Time>,
    },
    /// A checkpoint failed; the task runs on.
    CheckpointFailed {
        /// On which VM.
        vm: VmId,
        /// The task that was to be checkpointed.
        task: TaskId,
        /// The attempt at it that runs on.
        attempt: Attempt,
        /// What went wrong, as one line for the log.
        why: String,
    },
    /// The balance of a burstable VM when its use changed.
    Credits {
        /// The burstable VM.
        vm: VmId,
        /// The VM's credit balance.
        balance: Credits,
    },
    /// CPU time a VM was promised and got so far, real microseconds.
    Share {
        /// The VM that the CPU time is of.
        vm: VmId,
        /// CPU time that it should have had, real microseconds.
        real_promised_us: u64,
        /// CPU time that it has had, real microseconds.
        real_received_us: u64,
    },
    /// A job's slots are in the foreground now, where they were.
    TaskPromoted {
        /// The VM that the job is on.
        vm: VmId,
        /// The job that was promoted.
        task: TaskId,
        /// The attempt at it that was promoted.
        attempt: Attempt,
        /// From the command to here, real microseconds.
        real_took_us: u64,
    },
    /// A job goes on on other vCPUs of its VM.
    TaskMoved {
        /// The VM that the job is on.
        vm: VmId,
        /// The job that was moved.
        task: TaskId,
        /// The attempt at it that was moved.
        attempt: Attempt,
        /// What of its work came along.
        done: Ppm,
        /// Why nothing did; empty if it did.
        lost: String,
        /// From the command to here, real microseconds.
        real_took_us: u64,
        /// What the dump took of that.
        real_dump_us: u64,
        /// What the restore took of that.
        real_restore_us: u64,
        /// Size of the checkpoint.
        bytes: Bytes,
    },
    /// What a start of a parallel job that is over was due and got. Just before the report of its
    /// end.
    JobAccount {
        /// The VM that the job was on.
        vm: VmId,
        /// The job that the account is of.
        task: TaskId,
        /// The attempt at it that is over.
        attempt: Attempt,
        /// The account of this start.
        #[serde(flatten)]
        account: Box<JobAccount>,
    },
    /// What an attempt that is over was promised and got. Just before the report of its end.
    Ledger {
        /// On which VM.
        vm: VmId,
        /// The task that was attempted.
        task: TaskId,
        /// The attempt that is over.
        attempt: Attempt,
        /// The account of this attempt.
        #[serde(flatten)]
        ledger: Box<Ledger>,
    },
}

/// The VM of a report, behind the reference that the report is behind.
macro_rules! vm_of {
    ($report:expr) => {
        match $report {
            Report::VmCreated { vm }
            | Report::VmFrozen { vm, .. }
            | Report::VmThawed { vm, .. }
            | Report::VmDestroyed { vm }
            | Report::VmFailed { vm, .. }
            | Report::TaskStarted { vm, .. }
            | Report::TaskFinished { vm, .. }
            | Report::TaskFailed { vm, .. }
            | Report::TaskStopped { vm, .. }
            | Report::CheckpointTaken { vm, .. }
            | Report::CheckpointFailed { vm, .. }
            | Report::Credits { vm, .. }
            | Report::Share { vm, .. }
            | Report::TaskPromoted { vm, .. }
            | Report::TaskMoved { vm, .. }
            | Report::JobAccount { vm, .. }
            | Report::Ledger { vm, .. } => vm,
        }
    };
}

impl Report {
    /// The VM it is about.
    #[must_use]
    pub const fn vm(&self) -> VmId {
        *vm_of!(self)
    }

    /// The VM it is about, for whoever gives it another number.
    pub const fn vm_mut(&mut self) -> &mut VmId {
        vm_of!(self)
    }
}
