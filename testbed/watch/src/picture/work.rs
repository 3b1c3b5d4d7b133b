//! Tasks and parallel jobs of a picture: which wait, run and are done.

use std::collections::{BTreeMap, VecDeque};

use dormouse_model::Setup;
use dormouse_units::{Attempt, TaskId, Time, VmId};

/// The tasks of a run, with its parallel jobs, and the VMs that were requested, at a moment.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Tasks of the bag that are yet to be submitted, in order of time.
    to_come: VecDeque<(Time, TaskId)>,
    /// Those that are on a VM.
    running: BTreeMap<TaskId, Placement>,
    waiting: u64,
    done: u64,
}

/// The VM and the vCPUs that an attempt at a task has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) vm: VmId,
    pub(super) attempt: Attempt,
    pub(super) cpus: Vec<u32>,
}

/// The numbers of tasks that wait, run and are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) done: u64,
}

impl Work {
    /// The work of a bag, of which nothing has been submitted.
    pub(super) fn new(setup: &Setup) -> Self {
        let ids = (0..setup.bag.tasks.len()).filter_map(|n| u32::try_from(n).ok());
        let mut to_come: Vec<_> =
            ids.map(TaskId::new).map(|task| (setup.submitted(task), task)).collect();
        to_come.sort_unstable();
        Self { to_come: to_come.into(), ..Self::default() }
    }

    /// The next task of the bag that is submitted by `now`.
    pub(super) fn next_by(&mut self, now: Time) -> Option<(Time, TaskId)> {
        let due = self.to_come.pop_front_if(|(at, _)| *at <= now)?;
        self.waiting += 1;
        Some(due)
    }

    /// Something more waits: a job, or a request for a VM.
    pub(super) const fn came(&mut self) {
        self.waiting += 1;
    }

    /// A request for a VM has it.
    pub(super) const fn granted(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// A request for a VM is over.
    pub(super) const fn served(&mut self) {
        self.done += 1;
    }

    /// A task goes to a VM; where it was before.
    pub(super) fn starts(&mut self, task: TaskId, place: Placement) -> Option<Placement> {
        let before = self.running.insert(task, place);
        if before.is_none() {
            self.waiting = self.waiting.saturating_sub(1);
        }
        before
    }

    /// The place of a task, while it is on a VM.
    pub(super) fn place(&self, task: TaskId) -> Option<&Placement> {
        self.running.get(&task)
    }

    /// A task leaves its VM, done or not.
    pub(super) fn leaves(&mut self, task: TaskId, is_done: bool) -> Option<Placement> {
        let place = self.running.remove(&task)?;
        *(if is_done { &mut self.done } else { &mut self.waiting }) += 1;
        Some(place)
    }

    /// The tasks that are on a VM.
    pub(super) fn on(&self, vm: VmId) -> Vec<TaskId> {
        let there = self.running.iter().filter(|(_, place)| place.vm == vm);
        there.map(|(task, _)| *task).collect()
    }

    pub(super) fn tally(&self) -> Tally {
        Tally { waiting: self.waiting, running: self.running.len() as u64, done: self.done }
    }
}
