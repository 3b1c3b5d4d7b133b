//! Messages to a VM's owner: commands to the VM, and results of the VM's threads.

use dormouse_proto::v1::{
    Announce, CreateVm, MoveTask, SetMode, SetSupply, StartTask, StopTask, TaskRef,
};
use dormouse_vm::life::LaunchFailure;
use tokio::sync::OwnedSemaphorePermit;

use super::{birth::AttemptBirth, clock::CommandStamp, job::JobDeparture};
use crate::agent::{
    machine::TakenCheckpoint, own::KeptOutputs, report::Key, snapshot::SnapshotError,
};

/// A command to a VM.
#[derive(Debug)]
pub enum VmCommand {
    /// Freeze the VM for a hibernation.
    Freeze,
    /// Thaw the VM after a hibernation.
    Thaw,
    /// Destroy the VM with everything on it.
    Destroy,
    /// Start an attempt at a task.
    Start(Box<StartTask>),
    /// Stop an attempt.
    Stop(StopTask),
    /// Set the mode of an attempt.
    SetMode(SetMode),
    /// Set a vCPU's share of a core.
    SetSupply(SetSupply),
    /// Promote an attempt to the foreground.
    Promote(TaskRef),
    /// Move a parallel job to other vCPUs.
    Move(MoveTask),
    /// Checkpoint an attempt now, whatever was planned.
    CheckpointNow(TaskRef),
    /// Announce something to the VM's programs.
    Announce(Announce),
}

/// Messages to the owner of a VM: commands, results of its threads, and its alarm.
#[derive(Debug)]
pub(crate) enum OwnerMessage {
    /// Create the VM: the first message.
    Create(Box<CreateVm>, CommandStamp),
    Ask(VmCommand, CommandStamp),
    Launched(Key, Result<AttemptBirth, LaunchFailure>),
    /// A process has ended.
    Ended(Key),
    /// The files of a user's own program are kept, as far as possible.
    OwnKept(Key, KeptOutputs),
    /// An attempt has got its place at CRIU.
    DumpTurn(Key, OwnedSemaphorePermit),
    Dumped(Key, Result<TakenCheckpoint, SnapshotError>),
    /// The coordinator has stored the checkpoint of this number (with its size), or hasn't.
    Stored(Key, u32, Result<u64, String>),
    /// A job has left its seats, or hasn't.
    Left(Key, JobDeparture),
    /// The alarm has rung.
    Due,
    /// The alarm, queued again behind the messages that had already arrived.
    Wake,
}
