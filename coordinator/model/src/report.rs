//! Reports of hosts to a run.

use std::sync::Arc;
use std::time::Duration;

use dormouse_units::{Attempt, Bytes, CheckpointSeq, Credits, Ppm, TaskId, Time, VmId};
use serde::{Deserialize, Serialize};

use crate::{AttemptLedger, JobStartAccount, ProgramEnd};

/// Longest real delay with which a report still counts for the time at which its event was due; a later report counts for the time
/// of its arrival.
pub const MAX_REPORT_DELAY: Duration = Duration::from_millis(100);

/// A report of a host. Durations called `real` are in real time, zero in virtual time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Report {
    /// A VM was created.
    VmCreated {
        /// The VM that was made.
        vm: VmId,
    },
    /// A VM was frozen.
    VmFrozen {
        /// The VM that was frozen.
        vm: VmId,
        /// Time from the command until the VM was frozen, real microseconds.
        real_took_us: u64,
    },
    /// A frozen VM runs again.
    VmThawed {
        /// The VM that was resumed.
        vm: VmId,
        /// Time from the command until the VM ran again, real microseconds.
        real_took_us: u64,
    },
    /// A VM is gone.
    VmDestroyed {
        /// The VM that is gone.
        vm: VmId,
    },
    /// A VM could not be created or kept.
    VmFailed {
        /// The VM that failed.
        vm: VmId,
        /// Description of the failure, as one line for the log.
        why: String,
    },
    /// A task has begun to run.
    TaskStarted {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that has begun.
        task: TaskId,
        /// The attempt at the task that has begun.
        attempt: Attempt,
        /// Part of the work done before this start.
        done: Ppm,
        /// Time from the command to the task's first instruction, in real microseconds.
        real_took_us: u64,
        /// Part of `real_took_us` until a user program's inputs were in its directory, in real microseconds; it doesn't
        /// count against the VM.
        #[serde(default, skip_serializing_if = "crate::event::is_zero")]
        real_inputs_us: u64,
    },
    /// A task has finished its work.
    TaskFinished {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that is done.
        task: TaskId,
        /// The attempt that finished the task.
        attempt: Attempt,
        /// True if the task's answer is right, as far as the coordinator can tell.
        verified: bool,
        /// True if only the worker says that the task is done, as the coordinator could not check the answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reported: bool,
        /// True if a user's own program failed or gave a wrong answer: the task is over nevertheless.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        program_failed: bool,
        /// The answer as JSON from the task's program; `None` in virtual time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Arc<str>>,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
    },
    /// An attempt failed.
    TaskFailed {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was attempted.
        task: TaskId,
        /// The attempt that failed.
        attempt: Attempt,
        /// Description of the failure, as one line for the log.
        why: String,
        /// CPU time of this attempt, real microseconds.
        real_cpu_us: u64,
        /// True if the worker had the checkpoint and could not restore it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        could_not_restore: bool,
    },
    /// An attempt was stopped on command.
    TaskStopped {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was stopped.
        task: TaskId,
        /// The attempt at the task that is over.
        attempt: Attempt,
        /// The checkpoint that keeps the attempt's work, and the part of the work that it holds; `None`: nothing was
        /// kept.
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
        /// Time for which the task was stopped for the checkpoint, in real microseconds.
        real_held_us: u64,
        /// Part of `real_held_us` that CRIU's dump took, real microseconds.
        real_dump_us: u64,
        /// Time for which the task had to be stopped to match its promised duration, in real microseconds; zero in
        /// virtual time.
        #[serde(default)]
        real_owed_us: u64,
        /// CPU time of CRIU's code inside the task's processes, real microseconds.
        #[serde(default)]
        real_criu_us: u64,
        /// Emulated time at which a parallel job was stopped for the checkpoint, by its worker's clock; `None` for
        /// other tasks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_at: Option<Time>,
    },
    /// A checkpoint failed; the task continues.
    CheckpointFailed {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was to be checkpointed.
        task: TaskId,
        /// The attempt at the task, which continues.
        attempt: Attempt,
        /// Description of the failure, as one line for the log.
        why: String,
    },
    /// A user's own program was restored and has neither computed nor written anything since.
    TaskIdle {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that the program belongs to.
        task: TaskId,
        /// The attempt that was restored.
        attempt: Attempt,
        /// Time for which the program could have run since it was restored, in real microseconds.
        real_for_us: u64,
    },
    /// A user's own program was restored and, before it ran, compared with its state when the
    /// checkpoint began.
    TaskCompared {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that the program belongs to.
        task: TaskId,
        /// The attempt that was restored.
        attempt: Attempt,
        /// What has changed in the kernel's view of the program's processes, a sentence each.
        changes: Arc<[String]>,
    },
    /// Credit balance of a burstable VM, reported when its use changed.
    Credits {
        /// The burstable VM.
        vm: VmId,
        /// The VM's credit balance.
        balance: Credits,
        /// Time of the balance on the VM's clock, if the report was delayed so that its step has a
        /// later time; `None`: the time of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<Time>,
    },
    /// CPU time that a VM was promised and has received so far, in real microseconds.
    Share {
        /// The VM that was promised the CPU time.
        vm: VmId,
        /// CPU time that the VM should have received, real microseconds.
        real_promised_us: u64,
        /// CPU time that the VM has received, real microseconds.
        real_received_us: u64,
    },
    /// A background job has been promoted: it now runs in the foreground of its own vCPUs.
    TaskPromoted {
        /// The VM that the job is on.
        vm: VmId,
        /// The job that was promoted.
        task: TaskId,
        /// The attempt at the job that was promoted.
        attempt: Attempt,
        /// Time from the command to this report, real microseconds.
        real_took_us: u64,
    },
    /// A job continues on other vCPUs of its VM.
    TaskMoved {
        /// The VM that the job is on.
        vm: VmId,
        /// The job that was moved.
        task: TaskId,
        /// The attempt at the job that was moved.
        attempt: Attempt,
        /// Part of the job's work that was kept in the move.
        done: Ppm,
        /// Reason why no work was kept in the move; empty if work was kept.
        lost: String,
        /// Time from the command to this report, real microseconds.
        real_took_us: u64,
        /// Part of `real_took_us` that CRIU's dump took, in real microseconds.
        real_dump_us: u64,
        /// Part of `real_took_us` that CRIU's restore took, in real microseconds.
        real_restore_us: u64,
        /// Size of the checkpoint that carried the job.
        bytes: Bytes,
    },
    /// Account of an ended start of a parallel job; it comes just before the report of the job's
    /// end.
    JobAccount {
        /// The VM that the job was on.
        vm: VmId,
        /// The job whose account this is.
        task: TaskId,
        /// The attempt at the job that is over.
        attempt: Attempt,
        /// Account of the CPU time that the job was promised and received since this start.
        #[serde(flatten)]
        account: Box<JobStartAccount>,
    },
    /// Account of an ended attempt; it comes just before the report of the attempt's end.
    Ledger {
        /// The VM of the attempt.
        vm: VmId,
        /// The task that was attempted.
        task: TaskId,
        /// The attempt that is over.
        attempt: Attempt,
        /// Account of the CPU time that the attempt was promised and received.
        #[serde(flatten)]
        ledger: Box<AttemptLedger>,
        /// How the user's own program ended, if the attempt ran one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<Arc<ProgramEnd>>,
    },
}

/// Finds the VM of a report, as a shared or mutable reference.
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

    /// The VM that the report is about, as a mutable reference for renumbering.
    pub const fn vm_mut(&mut self) -> &mut VmId {
        vm_of!(self)
    }
}
