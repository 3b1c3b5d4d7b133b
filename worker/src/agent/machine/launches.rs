//! What is asked of a machine from the launch of an attempt to what its program leaves.

use dormouse_proto::v1::{OwnEnd, SavesAtNotice, StartTask};
use dormouse_vm::life::Seat;

use crate::{
    agent::{gate::Pass, report::Key},
    cgroup::Slot,
    workspace::TaskName,
};

/// A task of one process that is to come to life.
#[derive(Clone, Debug)]
pub(crate) struct TaskLaunch {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) order: StartTask,
    pub(crate) cpu: u32,
    pub(crate) slot: Slot,
    pub(crate) pass: Pass,
}

/// A program of the user's own that has ended, and whose answer and files are to be seen to.
#[derive(Clone, Debug)]
pub(crate) struct OwnKeep {
    pub(crate) name: TaskName,
    pub(crate) order: StartTask,
    pub(crate) end: OwnEnd,
    pub(crate) cpu: u32,
    pub(crate) slot: Option<Slot>,
    pub(crate) pass: Pass,
}

/// A notice for a program that saves its work when it hears of one.
#[derive(Clone, Debug)]
pub(crate) struct ProgramNotice<'a> {
    pub(crate) name: &'a TaskName,
    /// How the program hears of it.
    pub(crate) how: &'a SavesAtNotice,
    /// The notice's text.
    pub(crate) notice: &'a str,
    pub(crate) seats: &'a [Seat],
    /// The program's parent, which is the worker's own and is sent no signal.
    pub(crate) parent: Option<i32>,
}
