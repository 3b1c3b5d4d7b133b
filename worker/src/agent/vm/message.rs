//! Messages to a VM's owner: commands to the VM, and results of the VM's threads.

use std::sync::Arc;

use dormouse_proto::v1::{
    Announce, CreateVm, MoveTask, SetMode, SetNetwork, SetSupply, StartTask, StopTask, TaskRef,
};
use dormouse_vm::life::LaunchFailure;
use tokio::sync::OwnedSemaphorePermit;

use super::{clock::CommandStamp, job::JobDeparture};
use crate::agent::{
    cell::CellRelays,
    machine::{AttemptBirth, TakenCheckpoint, TaskProcess},
    own::KeptOutputs,
    report::Key,
    snapshot::SnapshotError,
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
    /// Announce an event, as an interruption, to the VM's programs.
    Announce(Announce),
    /// Change what the security groups of the VM's instance allow.
    SetNetwork(SetNetwork),
}

/// Messages to the owner of a VM: commands, results of its threads, and its alarm.
#[derive(Debug)]
pub(crate) enum OwnerMessage {
    /// Create the VM: the first message.
    Create(Box<CreateVm>, CommandStamp),
    Ask(VmCommand, CommandStamp),
    Launched(Key, Result<AttemptBirth, LaunchFailure>),
    /// The cell has its first process, or could not be started (with the reason).
    CellBegan(Result<Arc<dyn TaskProcess>, String>),
    /// The ways into and out of the cell are open, or could not be opened (with the reason).
    CellRelayed(Result<CellRelays, String>),
    /// The cell's first process has ended.
    CellEnded,
    /// A process has ended.
    Ended(Key),
    /// The files of a user's own program are kept, as far as possible.
    OwnKept(Key, KeptOutputs),
    /// A permit to use CRIU was given to an attempt that waits for a dump.
    DumpTurn(Key, OwnedSemaphorePermit),
    Dumped(Key, Result<TakenCheckpoint, SnapshotError>),
    /// The coordinator has stored an attempt's checkpoint of the given number (with its size in bytes), or hasn't (with the
    /// reason).
    Stored(Key, u32, Result<u64, String>),
    /// The dump by which a parallel job should leave its seats is over; how it went.
    Left(Key, JobDeparture),
    /// The timer that wakes the VM's owner has expired.
    Due,
    /// The owner's timer has expired; sent behind the messages that had arrived before.
    Wake,
}
