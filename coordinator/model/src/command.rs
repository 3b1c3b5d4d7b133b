//! Commands that a run gives its machines.

use std::sync::Arc;

use dormouse_cloud::{Burstable, Market};
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Cpus, FaultId, HostId, Mode, Ppm, Seats, Span, TaskId, Time,
    TypeName, VmId,
};

use crate::{FaultKind, Submission};

/// A command to a host. A host carries out its commands in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Make an empty VM.
    CreateVm {
        /// The host that is to make it.
        host: HostId,
        /// The new VM's id.
        vm: VmId,
        /// The VM's instance type, for people.
        kind: TypeName,
        /// On what terms the VM is had.
        market: Market,
        /// Number of the VM's vCPUs.
        vcpus: u32,
        /// The VM's memory.
        memory: Bytes,
        /// How the VM earns credits, if it is burstable.
        burstable: Option<Burstable>,
        /// Whether every vCPU has a background slot beside its foreground.
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
    /// Stop an attempt; on a frozen VM it never runs again.
    StopTask {
        /// The host of the VM.
        host: HostId,
        /// The VM that the task is on.
        vm: VmId,
        /// The task that is to be stopped.
        task: TaskId,
        /// The attempt at it that is to be stopped.
        attempt: Attempt,
        /// Whether to checkpoint the attempt before it is stopped.
        keep: bool,
    },
    /// Checkpoint an attempt now; it keeps running.
    CheckpointNow {
        /// The host of the VM.
        host: HostId,
        /// The VM that the task is on.
        vm: VmId,
        /// The task that is to be checkpointed.
        task: TaskId,
        /// The attempt at it that runs.
        attempt: Attempt,
        /// The time at which its program, which saves its work at the notice that its VM has now, is taken to have
        /// saved it; `None`: it is given no notice. Workers find it by what they announce to their VMs.
        saved_by: Option<Time>,
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
        /// Share of the processor that the VM in its foreground leaves.
        share: Ppm,
    },
    /// Change a task's mode between burst and baseline.
    SetMode {
        /// The host of the VM.
        host: HostId,
        /// The VM that the task is on.
        vm: VmId,
        /// The task that is to run in another mode.
        task: TaskId,
        /// The attempt at it that runs.
        attempt: Attempt,
        /// The mode from now on.
        mode: Mode,
    },
    /// Tell a VM's programs what is going to become of it.
    Announce {
        /// The host of the VM.
        host: HostId,
        /// The VM that is told.
        vm: VmId,
        /// What is announced.
        what: Announcement,
    },
    /// Have a fault.
    Fault {
        /// The host that is to have it.
        host: HostId,
        /// The number of the fault among the experiment's.
        fault: FaultId,
        /// Emulated time that the fault lasts.
        lasts: Span,
        /// What goes wrong.
        kind: FaultKind,
    },
}

/// What a provider announces to a VM itself, as its metadata endpoint says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The VM is ended for good at this instant.
    Terminate(Time),
    /// The VM hibernates at this instant.
    Hibernate(Time),
    /// The VM is likely to be taken.
    Rebalance,
}

/// The particulars of a task's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartTask {
    /// The host of the task's VM.
    pub host: HostId,
    /// The seat of each process.
    pub seats: Seats,
    /// The task to start.
    pub task: TaskId,
    /// The number of this start of the task: every start has a new one.
    pub attempt: Attempt,
    /// Memory that the task needs.
    pub memory: Bytes,
    /// Time the whole task takes on this VM at full speed.
    pub runtime: Span,
    /// The checkpoint to start from and what of the work it holds; `None`: from scratch.
    pub from: Option<(CheckpointSeq, Ppm)>,
    /// The attempt that took this checkpoint: other attempts may have left checkpoints of the same
    /// number.
    pub from_attempt: Attempt,
    /// Parts of the work at which the task is checkpointed, ascending.
    pub checkpoints: Vec<Ppm>,
    /// How long the task stands still for each of these checkpoints and for one that is asked for;
    /// zero for a parallel job of which nobody asks for any.
    pub checkpoint_cost: Span,
    /// The mode in which the task starts: burst or baseline.
    pub mode: Mode,
    /// The parallel job whose processes are started; `None` for any other task.
    pub job: Option<Arc<Submission>>,
}

impl Command {
    /// The host that the command is for.
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
            | Self::Announce { host, .. }
            | Self::Fault { host, .. }
            | Self::StartTask(StartTask { host, .. }) => *host,
        }
    }
}
