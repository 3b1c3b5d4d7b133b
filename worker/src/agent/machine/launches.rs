//! Orders to a machine, from the launch of an attempt to the keeping of its program's files.

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
    /// The attempt at the task.
    pub key: Key,
    /// Name of the task's folder and checkpoints.
    pub name: TaskName,
    /// The coordinator's command to start the task.
    pub order: StartTask,
    /// The vCPU that the task runs on.
    pub cpu: u32,
    /// The slot of the vCPU that the task runs in.
    pub slot: TierSlot,
    /// Permission to start processes on the VM; it can be revoked, and blocks while the VM is frozen.
    pub pass: LaunchPass,
}

/// Order to check the answer of a user's own program that has ended, and to keep its files.
#[derive(Clone, Debug)]
pub struct OwnKeep {
    /// Name of the task's folder and checkpoints.
    pub name: TaskName,
    /// The coordinator's command that started the program.
    pub order: StartTask,
    /// How the program ended.
    pub end: OwnEnd,
    /// The vCPU that the program ran on.
    pub cpu: u32,
    /// The slot of the vCPU that the program ran in.
    pub slot: Option<TierSlot>,
    /// Permission to start processes on the VM; it can be revoked, and blocks while the VM is frozen.
    pub pass: LaunchPass,
}

/// An interruption notice for a program that saves its work when it gets the notice.
#[derive(Clone, Debug)]
pub struct ProgramNotice<'a> {
    /// Name of the task's folder and checkpoints.
    pub name: &'a TaskName,
    /// How the program is notified.
    pub how: &'a SavesAtNotice,
    /// Text of the notice.
    pub notice: &'a str,
    /// Seats of the program's processes, by rank.
    pub seats: &'a [AttemptSeat],
    /// Process id of the parent of the program's processes; the parent belongs to the worker and gets no signal.
    pub parent: Option<i32>,
}
