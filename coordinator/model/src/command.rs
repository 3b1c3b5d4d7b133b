//! Commands of a run to its hosts.

use std::sync::Arc;

use dormouse_cloud::{BurstableTerms, Market};
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Cpus, FaultId, HostId, Mode, Ppm, Seats, Span, TaskId, Time,
    TypeName, VmId,
};

use crate::{FaultKind, Submission};

/// A command to a host. Each host executes its commands in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Create an empty VM.
    CreateVm {
        /// The host that creates the VM.
        host: HostId,
        /// The new VM's id.
        vm: VmId,
        /// Instance type of the VM, for people.
        kind: TypeName,
        /// Market in which the VM is bought.
        market: Market,
        /// Number of the VM's vCPUs.
        vcpus: u32,
        /// The VM's memory.
        memory: Bytes,
        /// Rates at which the VM earns credits, if it is burstable.
        burstable: Option<BurstableTerms>,
        /// True if every vCPU has a background slot beside its foreground.
        two_tier: bool,
    },
    /// Freeze a VM at once, keeping its memory (hibernation).
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
    /// Terminate a VM with everything on it.
    DestroyVm {
        /// The host of the VM.
        host: HostId,
        /// The VM to end.
        vm: VmId,
    },
    /// Start a task on vCPU slots that are free or about to be.
    StartTask(TaskStart),
    /// Stop an attempt; on a frozen VM the attempt never runs again.
    StopTask {
        /// The host of the VM.
        host: HostId,
        /// The VM that the task is on.
        vm: VmId,
        /// The task that is to be stopped.
        task: TaskId,
        /// Number of the task's or job's attempt that is to be stopped.
        attempt: Attempt,
        /// True to checkpoint the attempt before it is stopped.
        keep: bool,
    },
    /// Checkpoint an attempt now; the attempt keeps running.
    CheckpointNow {
        /// The host of the VM.
        host: HostId,
        /// The VM that the task is on.
        vm: VmId,
        /// The task that is to be checkpointed.
        task: TaskId,
        /// Number of the task's or job's running attempt, which is checkpointed.
        attempt: Attempt,
        /// Time by which the task's program is assumed to have saved its work after the VM's present
        /// notice; `None`: the program gets no notice. Workers, in contrast, learn of notices from their
        /// announcements to VMs.
        saved_by: Option<Time>,
    },
    /// Bring a background job to the foreground of its own vCPUs.
    PromoteTask {
        /// The host of the VM.
        host: HostId,
        /// The VM that the job is on.
        vm: VmId,
        /// The job to promote.
        task: TaskId,
        /// The attempt to bring to the foreground.
        attempt: Attempt,
    },
    /// Move a background job, with its progress, to the foreground of other vCPUs of its VM.
    MoveTask {
        /// The host of the VM.
        host: HostId,
        /// The VM that the job is on.
        vm: VmId,
        /// The job to move.
        task: TaskId,
        /// Number of the job's attempt that is to be moved.
        attempt: Attempt,
        /// The job's new vCPUs, one for each process.
        on: Cpus,
    },
    /// Set the share of a processor that a vCPU of a background VM gets from now on.
    SetSupply {
        /// The host of the VM.
        host: HostId,
        /// The VM in the background.
        vm: VmId,
        /// Number of the background VM's vCPU.
        vcpu: u32,
        /// Share of the processor that the VM in the processor's foreground leaves.
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
        /// Number of the task's or job's running attempt, whose mode changes.
        attempt: Attempt,
        /// The mode from now on.
        mode: Mode,
    },
    /// Announce to a VM's programs what will happen to it.
    Announce {
        /// The host of the VM.
        host: HostId,
        /// The VM that gets the announcement.
        vm: VmId,
        /// The announcement to make.
        what: ProviderAnnouncement,
    },
    /// Inject a fault.
    Fault {
        /// The host that gets the fault.
        host: HostId,
        /// Index of the fault in the experiment.
        fault: FaultId,
        /// Emulated time that the fault lasts.
        lasts: Span,
        /// Kind of the fault.
        kind: FaultKind,
    },
}

/// Announcement of a provider to a VM, which its metadata endpoint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderAnnouncement {
    /// The VM is terminated at this instant.
    Terminate(Time),
    /// The VM hibernates at this instant.
    Hibernate(Time),
    /// The VM is likely to be preempted.
    Rebalance,
    /// The VM's boot is over; this is for the VM's worker, which starts the VM's cell.
    Booted,
    /// The security groups of the VM's instance may allow other connections than before; for the VM's worker.
    Rewired,
    /// The files of the VM's instance outlive the VM, which is destroyed next; for the VM's worker.
    FilesKept,
    /// The kept files of the instance whose first VM this was are not needed any more; for the VM's worker.
    FilesForgotten,
}

/// Everything a host needs to start a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStart {
    /// The host of the task's VM.
    pub host: HostId,
    /// The VM, and the vCPU slot of each of the task's processes on it.
    pub seats: Seats,
    /// The task to start.
    pub task: TaskId,
    /// Number of this start of the task; every start has a new one.
    pub attempt: Attempt,
    /// Memory that the task needs.
    pub memory: Bytes,
    /// Time the whole task takes on this VM at full speed.
    pub runtime: Span,
    /// The checkpoint to start from and the part of the work that it holds; `None`: from scratch.
    pub from: Option<(CheckpointSeq, Ppm)>,
    /// The attempt that took the checkpoint from which the task starts; other attempts may have left checkpoints of
    /// the same number.
    pub from_attempt: Attempt,
    /// Parts of the work at which the task is checkpointed, ascending.
    pub checkpoints: Vec<Ppm>,
    /// Time that the task is stopped for each checkpoint, planned or requested; zero for a
    /// parallel job that is never checkpointed.
    pub checkpoint_cost: Span,
    /// Initial mode of the task: burst or baseline.
    pub mode: Mode,
    /// The parallel job that is started; `None` for a task of a bag.
    pub job: Option<Arc<Submission>>,
}

impl Command {
    /// The host that executes the command.
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
            | Self::StartTask(TaskStart { host, .. }) => *host,
        }
    }
}
