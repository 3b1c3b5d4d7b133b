//! A command that a worker answers.

use dormouse_model::{Command, Report};
use dormouse_units::{Attempt, TaskId, VmId};

/// Kind of a command about a VM or an attempt that its worker must answer with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkerOrder {
    Create,
    Freeze,
    Thaw,
    Destroy,
    Start(TaskId, Attempt),
    Stop(TaskId, Attempt),
    Promote(TaskId, Attempt),
    Move(TaskId, Attempt),
}

impl WorkerOrder {
    /// Returns the VM and the kind of a command that its worker must answer; `None`: the worker need not. A change of mode or
    /// supply, or a checkpoint, may go unanswered, as the task runs on; faults and announcements have no answer.
    pub(super) const fn from_command(command: &Command) -> Option<(VmId, Self)> {
        match *command {
            Command::CreateVm { vm, .. } => Some((vm, Self::Create)),
            Command::FreezeVm { vm, .. } => Some((vm, Self::Freeze)),
            Command::ThawVm { vm, .. } => Some((vm, Self::Thaw)),
            Command::DestroyVm { vm, .. } => Some((vm, Self::Destroy)),
            Command::StartTask(ref start) => {
                Some((start.seats.vm, Self::Start(start.task, start.attempt)))
            }
            Command::StopTask { vm, task, attempt, .. } => Some((vm, Self::Stop(task, attempt))),
            Command::PromoteTask { vm, task, attempt, .. } => {
                Some((vm, Self::Promote(task, attempt)))
            }
            Command::MoveTask { vm, task, attempt, .. } => Some((vm, Self::Move(task, attempt))),
            Command::SetMode { .. }
            | Command::CheckpointNow { .. }
            | Command::SetSupply { .. }
            | Command::Fault { .. }
            | Command::Announce { .. } => None,
        }
    }

    /// Returns the kind of command that a report answers; `None`: it answers none, or all commands about its VM or
    /// attempt.
    pub(super) const fn from_report(report: &Report) -> Option<Self> {
        match *report {
            Report::VmCreated { .. } => Some(Self::Create),
            Report::VmFrozen { .. } => Some(Self::Freeze),
            Report::VmThawed { .. } => Some(Self::Thaw),
            Report::TaskStarted { task, attempt, .. } => Some(Self::Start(task, attempt)),
            Report::TaskStopped { task, attempt, .. } => Some(Self::Stop(task, attempt)),
            Report::TaskPromoted { task, attempt, .. } => Some(Self::Promote(task, attempt)),
            Report::TaskMoved { task, attempt, .. } => Some(Self::Move(task, attempt)),
            Report::TaskFinished { .. }
            | Report::TaskFailed { .. }
            | Report::VmDestroyed { .. }
            | Report::VmFailed { .. }
            | Report::CheckpointTaken { .. }
            | Report::CheckpointFailed { .. }
            | Report::TaskIdle { .. }
            | Report::TaskCompared { .. }
            | Report::Credits { .. }
            | Report::Share { .. }
            | Report::JobAccount { .. }
            | Report::Ledger { .. } => None,
        }
    }

    /// Returns the attempt that the command is about; `None`: the command is about a VM.
    pub(super) const fn order_attempt(self) -> Option<(TaskId, Attempt)> {
        match self {
            Self::Start(task, attempt)
            | Self::Stop(task, attempt)
            | Self::Promote(task, attempt)
            | Self::Move(task, attempt) => Some((task, attempt)),
            Self::Create | Self::Freeze | Self::Thaw | Self::Destroy => None,
        }
    }

    /// Returns whether the answer to the command may wait for as long as the VM is frozen.
    pub(super) const fn waits_while_frozen(self) -> bool {
        matches!(self, Self::Start(..) | Self::Stop(..))
    }

    /// Describes the command in words, for the user whose worker doesn't answer it.
    pub(super) fn describe_order(self, vm: VmId) -> String {
        match self {
            Self::Create => format!("make {vm}"),
            Self::Freeze => format!("freeze {vm}"),
            Self::Thaw => format!("thaw {vm}"),
            Self::Destroy => format!("destroy {vm}"),
            Self::Start(task, attempt) => format!("start {task} ({attempt}) on {vm}"),
            Self::Stop(task, attempt) => format!("stop {task} ({attempt}) on {vm}"),
            Self::Promote(task, attempt) => format!("promote {task} ({attempt}) on {vm}"),
            Self::Move(task, attempt) => format!("move {task} ({attempt}) on {vm}"),
        }
    }
}
