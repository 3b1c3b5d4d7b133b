//! What a VM's owner is told: what is asked of the VM, and what its threads have done.

use dormouse_proto::v1::{
    Announce, CreateVm, MoveTask, SetMode, SetSupply, StartTask, StopTask, TaskRef,
};
use dormouse_vm::life::LaunchFailure;
use tokio::sync::OwnedSemaphorePermit;

use super::{birth::AttemptBirth, clock::CommandStamp, job::JobDeparture};
use crate::agent::{
    machine::TakenCheckpoint, own::KeptOutputs, report::Key, snapshot::SnapshotError,
};

/// What a VM is asked to do.
#[derive(Debug)]
pub enum VmCommand {
    /// Stand still, as in a hibernation.
    Freeze,
    /// Go on after a hibernation.
    Thaw,
    /// End, with all that runs there.
    Destroy,
    /// Run an attempt at a task.
    Start(Box<StartTask>),
    /// Stop an attempt.
    Stop(StopTask),
    /// Run an attempt in another mode.
    SetMode(SetMode),
    /// Give a vCPU another share of a core.
    SetSupply(SetSupply),
    /// Bring an attempt to the foreground.
    Promote(TaskRef),
    /// Move a parallel job to other vCPUs.
    Move(MoveTask),
    /// Take a checkpoint of an attempt, whatever was planned.
    CheckpointNow(TaskRef),
    /// Hear what is going to become of the VM.
    Announce(Announce),
}

/// What comes to an owner: commands, what its threads have done, and its own alarm.
#[derive(Debug)]
pub(crate) enum OwnerMessage {
    /// Make the VM: the first.
    Create(Box<CreateVm>, CommandStamp),
    Ask(VmCommand, CommandStamp),
    Launched(Key, Result<AttemptBirth, LaunchFailure>),
    /// The process has ended.
    Ended(Key),
    /// What a program of the user's own left is kept, as far as it can be.
    OwnKept(Key, KeptOutputs),
    /// The turn at CRIU is this attempt's.
    DumpTurn(Key, OwnedSemaphorePermit),
    Dumped(Key, Result<TakenCheckpoint, SnapshotError>),
    /// The coordinator has the checkpoint of this number (its size), or has not.
    Stored(Key, u32, Result<u64, String>),
    /// A job is to go on elsewhere.
    Left(Key, JobDeparture),
    /// Something is due by itself.
    Due,
    /// The alarm, queued again behind the messages that had already come.
    Wake,
}
