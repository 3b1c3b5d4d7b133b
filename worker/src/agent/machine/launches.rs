//! What is asked of a machine from the launch of an attempt to what its program leaves.

use dormouse_proto::v1::{OwnEnd, SavesAtNotice, StartTask};
use dormouse_vm::life::AttemptSeat;

use crate::{
    agent::{gate::LaunchPass, report::Key},
    cgroup::TierSlot,
    workspace::TaskName,
};

/// Order to start a task of one process.
#[derive(Clone, Debug)]
pub struct TaskLaunch {
    /// The attempt.
    pub key: Key,
    /// Name of its folder and its checkpoints.
    pub name: TaskName,
    /// The coordinator's command.
    pub order: StartTask,
    /// Its vCPU.
    pub cpu: u32,
    /// Its slot of the vCPU.
    pub slot: TierSlot,
    /// Permission of the VM.
    pub pass: LaunchPass,
}

/// Order to check the answer of a user's own program that has ended, and to keep its files.
#[derive(Clone, Debug)]
pub struct OwnKeep {
    /// Name of its folder and its checkpoints.
    pub name: TaskName,
    /// The coordinator's command.
    pub order: StartTask,
    /// How the program ended.
    pub end: OwnEnd,
    /// Its vCPU.
    pub cpu: u32,
    /// Its slot of the vCPU.
    pub slot: Option<TierSlot>,
    /// Permission of the VM.
    pub pass: LaunchPass,
}

/// A notice of interruption for a program that saves its work then.
#[derive(Clone, Debug)]
pub struct ProgramNotice<'a> {
    /// Name of its folder and its checkpoints.
    pub name: &'a TaskName,
    /// How the program is notified.
    pub how: &'a SavesAtNotice,
    /// Text of the notice.
    pub notice: &'a str,
    /// Seats of its processes, by rank.
    pub seats: &'a [AttemptSeat],
    /// Parent of the program's processes, which belongs to the worker and gets no signal.
    pub parent: Option<i32>,
}
