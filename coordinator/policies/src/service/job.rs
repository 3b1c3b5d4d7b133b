//! A job of the service: some tasks that run together, each on a VM of its own.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::StartReason;
use dormouse_units::{Ppm, TaskId, Time, VmId};

/// What a job is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has no VMs.
    Waiting,
    /// It has its VMs; some may boot.
    Forming,
    /// The job's tasks run, or have ended.
    Running,
    /// All its tasks have ended, or it has been given up.
    Over,
}

/// One job of the service.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) phase: Phase,
    /// The job's tasks that have not ended.
    pub(super) left: BTreeSet<TaskId>,
    /// The job's VMs, each with the task it is for and why it was chosen. Those of tasks that have
    /// ended stay the job's own until all have.
    pub(super) on: BTreeMap<VmId, (TaskId, StartReason)>,
    /// What checkpoints keep of its tasks.
    kept: BTreeMap<TaskId, Ppm>,
    /// When it was started last.
    pub(super) begun: Time,
    /// VMs that it lost while they ran it.
    pub(super) preemptions: u32,
    /// Attempts at its tasks that failed.
    pub(super) failures: u32,
}

impl Job {
    pub(super) fn new(tasks: BTreeSet<TaskId>) -> Self {
        Self {
            phase: Phase::Waiting,
            left: tasks,
            on: BTreeMap::new(),
            kept: BTreeMap::new(),
            begun: Time::ZERO,
            preemptions: 0,
            failures: 0,
        }
    }

    /// A checkpoint keeps so much of a task.
    pub(super) fn keeps(&mut self, task: TaskId, done: Ppm) {
        self.kept.insert(task, done);
    }

    /// How much is kept of the task of which the least is.
    pub(super) fn kept(&self) -> Ppm {
        let kept = |task| self.kept.get(task).copied().unwrap_or(Ppm::ZERO);
        self.left.iter().map(kept).min().unwrap_or(Ppm::ONE)
    }

    /// Whether it has had to begin anew or go on: how long it takes is not told by its end then.
    pub(super) const fn was_broken(&self) -> bool {
        self.preemptions + self.failures > 0
    }
}
