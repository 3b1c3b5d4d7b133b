//! A job of the service: tasks that run together, each on a VM of its own.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::StartReason;
use dormouse_units::{Ppm, TaskId, Time, VmId};

/// Phase of a job, from its submission to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobPhase {
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
pub(super) struct ServiceJob {
    pub(super) phase: JobPhase,
    /// The job's tasks that have not ended.
    pub(super) left: BTreeSet<TaskId>,
    /// The job's VMs, each with its task and the reason for choosing the VM. The job keeps the VMs of tasks
    /// that have ended until all of its tasks have ended.
    pub(super) on: BTreeMap<VmId, (TaskId, StartReason)>,
    /// Parts of the tasks' work that checkpoints keep.
    kept: BTreeMap<TaskId, Ppm>,
    /// Time at which the job was started last.
    pub(super) begun: Time,
    /// Number of VMs that the job lost while it ran on them.
    pub(super) preemptions: u32,
    /// Number of failed attempts at the job's tasks.
    pub(super) failures: u32,
}

impl ServiceJob {
    pub(super) fn new(tasks: BTreeSet<TaskId>) -> Self {
        Self {
            phase: JobPhase::Waiting,
            left: tasks,
            on: BTreeMap::new(),
            kept: BTreeMap::new(),
            begun: Time::ZERO,
            preemptions: 0,
            failures: 0,
        }
    }

    /// Notes that a checkpoint keeps this part of a task's work.
    pub(super) fn keep_work(&mut self, task: TaskId, done: Ppm) {
        self.kept.insert(task, done);
    }

    /// The least kept part of the work among the tasks that have not ended.
    pub(super) fn least_kept(&self) -> Ppm {
        let kept = |task| self.kept.get(task).copied().unwrap_or(Ppm::ZERO);
        self.left.iter().map(kept).min().unwrap_or(Ppm::ONE)
    }

    /// True if the job was interrupted, so that its end doesn't show how long it takes.
    pub(super) const fn was_broken(&self) -> bool {
        self.preemptions + self.failures > 0
    }
}
