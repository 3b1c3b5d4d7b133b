//! What the machines are told and what they report, modelled or real.

use std::sync::Arc;

use dormouse_cloud::Burstable;
use dormouse_policies::batch::Submission;
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Cpus, Credits, HostId, Mode, Ppm, Seats, Span, TaskId, Tier,
    Time, TypeName, VmId,
};
use serde::{Deserialize, Serialize};

/// What a host is told to do. Commands to one host are carried out in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Make a VM, empty.
    CreateVm {
        /// The host that is to make it.
        host: HostId,
        /// The new VM's id.
        vm: VmId,
        /// The VM's instance type, for people.
        kind: TypeName,
        /// Number of the VM's vCPUs.
        vcpus: u32,
        /// The VM's memory.
        memory: Bytes,
        /// How it earns credits, if burstable.
        burstable: Option<Burstable>,
        /// Every vCPU has a background slot beside its foreground.
        two_tier: bool,
    },
    /// Hibernate: freeze a VM at once, keep its memory.
    FreezeVm {
        /// The host of the VM.
        host: HostId,
        /// The VM to freeze.
        vm: VmId,
    },
    /// Resume a frozen VM.
    ThawVm {
        /// The host of the VM.
        host: HostId,
        /// The VM to resume.
        vm: VmId,
    },
    /// End a VM and everything on it.
    DestroyVm {
        /// The host of the VM.
        host: HostId,
        /// The VM to end.
        vm: VmId,
    },
    /// Run a task on seats that are free, or are being left.
    StartTask(StartTask),
    /// Stop an attempt; of a frozen VM it never runs again.
    StopTask {
        /// The host of the VM.
        host: HostId,
        /// On which VM.
        vm: VmId,
        /// The task that is to be stopped.
        task: TaskId,
        /// The attempt at it that is to be stopped.
        attempt: Attempt,
        /// Checkpoint it first.
        keep: bool,
    },
    /// Checkpoint an attempt now; it keeps running.
    CheckpointNow {
        /// The host of the VM.
        host: HostId,
        /// On which VM.
        vm: VmId,
        /// The task that is to be checkpointed.
        task: TaskId,
        /// The attempt at it that runs.
        attempt: Attempt,
    },
    /// Swap the tiers of the vCPUs of a background job.
    PromoteTask {
        /// The host of the VM.
        host: HostId,
        /// The VM that the job is on.
        vm: VmId,
        /// The job to promote.
        task: TaskId,
        /// The attempt at it that is to come to the foreground.
        attempt: Attempt,
    },
    /// Move a background job, with what it has done, to the foreground of other vCPUs of its VM.
    MoveTask {
        /// The host of the VM.
        host: HostId,
        /// The VM that the job is on.
        vm: VmId,
        /// The job to move.
        task: TaskId,
        /// The attempt at it that is to be moved.
        attempt: Attempt,
        /// The vCPU of each process.
        on: Cpus,
    },
    /// A vCPU of a VM in the background has this share of its processor from now on.
    SetSupply {
        /// The host of the VM.
        host: HostId,
        /// The VM in the background.
        vm: VmId,
        /// The number of the vCPU on it.
        vcpu: u32,
        /// What the VM in the foreground leaves.
        share: Ppm,
    },
    /// Change between burst and baseline.
    SetMode {
        /// The host of the VM.
        host: HostId,
        /// On which VM.
        vm: VmId,
        /// The task that is to run in another mode.
        task: TaskId,
        /// The attempt at it that runs.
        attempt: Attempt,
        /// The mode from now on.
        mode: Mode,
    },
}

/// The particulars of a task's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartTask {
    /// The host of its VM.
    pub host: HostId,
    /// The seat of each process.
    pub seats: Seats,
    /// The task to start.
    pub task: TaskId,
    /// The number of this start of the task: every start has a new one.
    pub attempt: Attempt,
    /// Memory it needs.
    pub memory: Bytes,
    /// Time the whole task takes on this VM at full speed.
    pub runtime: Span,
    /// The checkpoint to start from and what of the work it holds; `None`: from scratch.
    pub from: Option<(CheckpointSeq, Ppm)>,
    /// The attempt that took that checkpoint: former lives may have left others of its number.
    pub from_attempt: Attempt,
    /// At which parts of the work it is checkpointed, ascending.
    pub checkpoints: Vec<Ppm>,
    /// How long it stands still for each, and for one that is asked for; zero for a parallel job of
    /// which nobody asks for any.
    pub checkpoint_cost: Span,
    /// Burst or baseline.
    pub mode: Mode,
    /// What the processes of a parallel job do; `None` for any other task.
    pub job: Option<Arc<Submission>>,
}

impl Command {
    /// The host it is for.
    #[must_use]
    pub const fn host(&self) -> HostId {
        match self {
            Self::CreateVm { host, .. }
            | Self::FreezeVm { host, .. }
            | Self::ThawVm { host, .. }
            | Self::DestroyVm { host, .. }
            | Self::StopTask { host, .. }
            | Self::PromoteTask { host, .. }
            | Self::MoveTask { host, .. }
            | Self::SetMode { host, .. }
            | Self::CheckpointNow { host, .. }
            | Self::SetSupply { host, .. }
            | Self::StartTask(StartTask { host, .. }) => *host,
        }
    }
}

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
