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
    /// Name under which the task's folder and its checkpoints are kept.
    pub name: TaskName,
    /// The coordinator's command.
    pub order: StartTask,
    /// The task's vCPU.
    pub cpu: u32,
    /// The task's slot on the vCPU.
    pub slot: TierSlot,
    /// Permission of the VM for this work, which the VM can revoke.
    pub pass: LaunchPass,
}

/// Order to check the answer of a user's own program that has ended, and to keep its files.
#[derive(Clone, Debug)]
pub struct OwnKeep {
    /// Name under which the task's folder and its checkpoints are kept.
    pub name: TaskName,
    /// The coordinator's command.
    pub order: StartTask,
    /// How the program ended.
    pub end: OwnEnd,
    /// The task's vCPU.
    pub cpu: u32,
    /// The task's slot on the vCPU.
    pub slot: Option<TierSlot>,
    /// Permission of the VM for this work, which the VM can revoke.
    pub pass: LaunchPass,
}

/// A notice of interruption for a program that saves its work then.
#[derive(Clone, Debug)]
pub struct ProgramNotice<'a> {
    /// Name under which the task's folder and its checkpoints are kept.
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
