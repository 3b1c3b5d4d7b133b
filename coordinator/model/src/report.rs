//! Reports of machines to a run.

use std::sync::Arc;
use std::time::Duration;

use dormouse_units::{Attempt, Bytes, CheckpointSeq, Credits, Ppm, TaskId, Time, VmId};
use serde::{Deserialize, Serialize};

use crate::{JobAccount, Ledger, OwnEnd};

/// The longest real time after something was due at which a report of it may come for it to count as of then; what is
/// reported later happened when the report came.
pub const MAX_REPORT_DELAY: Duration = Duration::from_millis(100);

/// A report of a machine. Durations called `real` are of real time, zero in virtual time.
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
        /// Time from the command until it took effect, real microseconds.
        real_took_us: u64,
    },
    /// The VM runs again.
    VmThawed {
        /// The VM that was resumed.
        vm: VmId,
        /// Time from the command until it took effect, real microseconds.
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
        /// The VM of the attempt.
        vm: VmId,
        /// The task that has begun.
        task: TaskId,
        /// The attempt at it that has begun.
        attempt: Attempt,
        /// Part of the work that was done before.
        done: Ppm,
        /// Time from the command to the task's own first instruction, real microseconds.
        real_took_us: u64,
        /// What of that passed until the inputs of a program of the user's own were in its directory, real
        /// microseconds: the VM owes it no time for that.
        #[serde(default, skip_serializing_if = "crate::event::is_zero")]
        real_inputs_us: u64,
    },
    /// The task has done its work.
    TaskFinished {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that is done.
        task: TaskId,
        /// The attempt that has done it.
        attempt: Attempt,
        /// Whether the task's answer is right, as far as the coordinator can say.
        verified: bool,
        /// Whether that is only the worker's word: the coordinator had nothing to check it by.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reported: bool,
        /// Whether it was a program of the user's own that did not end well, or whose answer is wrong: that is how
        /// it is, and the task is over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        program_failed: bool,
        /// The answer, as the JSON that the task's program left; `None` in virtual time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Arc<str>>,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
    },
    /// The attempt came to nothing.
    TaskFailed {
        /// The VM of the attempt.
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
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was stopped.
        task: TaskId,
        /// The attempt at it that is over.
        attempt: Attempt,
        /// The checkpoint that keeps the attempt's work, and the part of the work that it holds.
        kept: Option<(CheckpointSeq, Ppm)>,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
    },
    /// A checkpoint is complete and stored.
    CheckpointTaken {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that can be restarted from the checkpoint.
        task: TaskId,
        /// The attempt that the checkpoint was taken of.
        attempt: Attempt,
        /// The number of the checkpoint.
        checkpoint: CheckpointSeq,
        /// Part of the work that the checkpoint holds.
        done: Ppm,
        /// The size of the checkpoint.
        bytes: Bytes,
        /// How long the task stood still, real microseconds.
        real_held_us: u64,
        /// Part of `real_held_us` that CRIU took, real microseconds.
        real_dump_us: u64,
        /// How long the task had to stand still for its time to be what it was promised, real
        /// microseconds; zero in virtual time.
        #[serde(default)]
        real_owed_us: u64,
        /// CPU time that CRIU used inside the task, real microseconds.
        #[serde(default)]
        real_criu_us: u64,
        /// Emulated time since when a parallel job stood still, by its worker's clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_at: Option<Time>,
    },
    /// A checkpoint failed; the task runs on.
    CheckpointFailed {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was to be checkpointed.
        task: TaskId,
        /// The attempt at it that runs on.
        attempt: Attempt,
        /// What went wrong, as one line for the log.
        why: String,
    },
    /// A program of the user's own that was restored has neither computed nor written anything since.
    TaskIdle {
        /// The VM of the attempt.
        vm: VmId,
        /// The task whose program it is.
        task: TaskId,
        /// The attempt that was restored.
        attempt: Attempt,
        /// For how long it might have run by then, real microseconds.
        real_for_us: u64,
    },
    /// A program of the user's own was restored, and compared with what it was when the checkpoint began, before it ran.
    TaskCompared {
        /// The VM of the attempt.
        vm: VmId,
        /// The task whose program it is.
        task: TaskId,
        /// The attempt that was restored.
        attempt: Attempt,
        /// What the kernel says of its processes otherwise than before, in a sentence each.
        changes: Arc<[String]>,
    },
    /// The balance of a burstable VM when its use changed.
    Credits {
        /// The burstable VM.
        vm: VmId,
        /// The VM's credit balance.
        balance: Credits,
        /// When it was so by the VM's clock, where the report waited so long that its step is of a later time: its
        /// coordinator stood still, or no message passed. Left out: at the time of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<Time>,
    },
    /// CPU time that a VM was promised and got so far, real microseconds.
    Share {
        /// The VM that was promised the CPU time.
        vm: VmId,
        /// CPU time that the VM should have had, real microseconds.
        real_promised_us: u64,
        /// CPU time that the VM has had, real microseconds.
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
        /// Time from the command to this report, real microseconds.
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
        /// Part of the job's work that came along.
        done: Ppm,
        /// Why no work came along; empty if it did.
        lost: String,
        /// Time from the command to this report, real microseconds.
        real_took_us: u64,
        /// Part of `real_took_us` that the dump took.
        real_dump_us: u64,
        /// Part of `real_took_us` that the restore took.
        real_restore_us: u64,
        /// Size of the checkpoint.
        bytes: Bytes,
    },
    /// Account of a start of a parallel job that is over; it comes just before the report of the
    /// job's end.
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
    /// Account of an attempt that is over; it comes just before the report of the attempt's end.
    Ledger {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was attempted.
        task: TaskId,
        /// The attempt that is over.
        attempt: Attempt,
        /// The account of this attempt.
        #[serde(flatten)]
        ledger: Box<Ledger>,
        /// How the program of the user's own ended that the attempt ran, if it ran one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<Arc<OwnEnd>>,
    },
}

/// The VM of a report, by the same kind of reference as the report.
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
            | Report::TaskIdle { vm, .. }
            | Report::TaskCompared { vm, .. }
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
    /// The VM that the report is about.
    #[must_use]
    pub const fn vm(&self) -> VmId {
        *vm_of!(self)
    }

    /// The VM that the report is about, so that it can get another number.
    pub const fn vm_mut(&mut self) -> &mut VmId {
        vm_of!(self)
    }
}
