//! What is asked of a machine from the launch of an attempt to what its program leaves.

use dormouse_proto::v1::{OwnEnd, SavesAtNotice, StartTask};
use dormouse_vm::life::AttemptSeat;

use crate::{
    agent::{gate::LaunchPass, report::Key},
    cgroup::TierSlot,
    workspace::TaskName,
};

/// A task of one process that is to come to life.
#[derive(Clone, Debug)]
pub struct TaskLaunch {
    /// Names the attempt.
    pub key: Key,
    /// Names its folder and its checkpoints.
    pub name: TaskName,
    /// The order of the coordinator.
    pub order: StartTask,
    /// The vCPU that it is on.
    pub cpu: u32,
    /// The slot of the vCPU.
    pub slot: TierSlot,
    /// What the VM allows it.
    pub pass: LaunchPass,
}

/// A program of the user's own that has ended, and whose answer and files are to be seen to.
#[derive(Clone, Debug)]
pub struct OwnKeep {
    /// Names its folder and its checkpoints.
    pub name: TaskName,
    /// The order of the coordinator.
    pub order: StartTask,
    /// How the program ended.
    pub end: OwnEnd,
    /// The vCPU that it is on.
    pub cpu: u32,
    /// The slot of the vCPU.
    pub slot: Option<TierSlot>,
    /// What the VM allows it.
    pub pass: LaunchPass,
}

/// A notice for a program that saves its work when it hears of one.
#[derive(Clone, Debug)]
pub struct ProgramNotice<'a> {
    /// Names its folder and its checkpoints.
    pub name: &'a TaskName,
    /// How the program hears of it.
    pub how: &'a SavesAtNotice,
    /// The notice's text.
    pub notice: &'a str,
    /// The seats of its processes, by their number.
    pub seats: &'a [AttemptSeat],
    /// The program's parent, which is the worker's own and is sent no signal.
    pub parent: Option<i32>,
}
