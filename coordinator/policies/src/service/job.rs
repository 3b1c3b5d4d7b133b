//! A job of the service: tasks that run together, each on a VM of its own.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::StartReason;
use dormouse_units::{Ppm, TaskId, Time, VmId};

/// Phase of a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The job has no VMs.
    Waiting,
    /// The job has its VMs; some may still boot.
    Forming,
    /// The job's tasks run, or have ended.
    Running,
    /// All tasks of the job have ended, or it has been given up.
    Over,
}

/// One job of the service.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) phase: Phase,
    /// The job's tasks that have not ended.
    pub(super) left: BTreeSet<TaskId>,
    /// The job's VMs, each with its task and the reason for choosing it. VMs of tasks that have
    /// ended stay the job's own until all its tasks have ended.
    pub(super) on: BTreeMap<VmId, (TaskId, StartReason)>,
    /// Parts of the tasks' work that checkpoints keep.
    kept: BTreeMap<TaskId, Ppm>,
    /// When the job was started last.
    pub(super) begun: Time,
    /// Number of VMs that the job lost while it ran on them.
    pub(super) preemptions: u32,
    /// Number of failed attempts at the job's tasks.
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

    /// Notes that a checkpoint keeps this part of a task's work.
    pub(super) fn keeps(&mut self, task: TaskId, done: Ppm) {
        self.kept.insert(task, done);
    }

    /// The least part of its work that is kept of any task that has not ended.
    pub(super) fn kept(&self) -> Ppm {
        let kept = |task| self.kept.get(task).copied().unwrap_or(Ppm::ZERO);
        self.left.iter().map(kept).min().unwrap_or(Ppm::ONE)
    }

    /// Whether the job was interrupted: then its end does not tell how long it takes.
    pub(super) const fn was_broken(&self) -> bool {
        self.preemptions + self.failures > 0
    }
}
