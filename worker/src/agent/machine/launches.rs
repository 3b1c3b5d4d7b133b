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
    /// The attempt at the task that is started.
    pub key: Key,
    /// Name that the task's folder and checkpoints have.
    pub name: TaskName,
    /// The coordinator's command to start the task.
    pub order: StartTask,
    /// The vCPU on which the task runs.
    pub cpu: u32,
    /// The slot of the vCPU in which the task runs.
    pub slot: TierSlot,
    /// Permission of the VM to launch a process.
    pub pass: LaunchPass,
}

/// Order to check the answer of a user's own program that has ended, and to keep its files.
#[derive(Clone, Debug)]
pub struct OwnKeep {
    /// Name that the task's folder and checkpoints have.
    pub name: TaskName,
    /// The coordinator's command that started the program.
    pub order: StartTask,
    /// How the program ended.
    pub end: OwnEnd,
    /// The vCPU on which the program ran.
    pub cpu: u32,
    /// The slot of the vCPU in which the check runs; `None`: the program had none.
    pub slot: Option<TierSlot>,
    /// Permission of the VM to launch the check.
    pub pass: LaunchPass,
}

/// A notice of interruption for a program that saves its work then.
#[derive(Clone, Debug)]
pub struct ProgramNotice<'a> {
    /// Name that the task's folder and checkpoints have.
    pub name: &'a TaskName,
    /// How the program is notified.
    pub how: &'a SavesAtNotice,
    /// Text of the notice.
    pub notice: &'a str,
    /// Seats of the program's processes, by rank.
    pub seats: &'a [AttemptSeat],
    /// Parent of the program's processes, which belongs to the worker and gets no signal.
    pub parent: Option<i32>,
}
