//! What runs on a modelled VM, and what happens to it there.

use dormouse_units::{Attempt, Bytes, Cpus, Credits, Mode, Ppm, Span, TaskId, Tier, Time, Usage};

/// A task's work on a modelled VM.
#[derive(Clone, Debug)]
pub struct ModelTask {
    /// Task that the work is of.
    pub task: TaskId,
    /// Attempt at the task.
    pub attempt: Attempt,
    /// Memory it needs.
    pub memory: Bytes,
    /// Time the whole of it takes on this VM at full speed.
    pub runtime: Span,
    /// What part of it is done before.
    pub done: Ppm,
    /// Burst or baseline.
    pub mode: Mode,
    /// The vCPU of each of its processes. That of a task of one process may be left out: with none,
    /// and where its slot is not free, it gets the first whose slot is.
    pub on: Cpus,
    /// In which slot of its vCPUs.
    pub tier: Tier,
    /// What of a vCPU its processes use.
    pub usage: Usage,
    /// At which parts of the work it is checkpointed, ascending.
    pub checkpoints: Vec<Ppm>,
    /// The time for which it stands still for each.
    pub checkpoint_cost: Span,
    /// Whether it stands still as soon as a checkpoint is due, or when it is told to.
    pub hold: CheckpointHold,
}

/// The times at which a task stands still for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointHold {
    /// As soon as it is due, for what it costs.
    #[default]
    WhenDue,
    /// At the time that [`Model::hold_task`](crate::Model::hold_task) says, for as long as it says.
    WhenTold,
}

/// Something that happens on a modelled VM by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkEvent {
    /// A task has done its work. It keeps its seats until it is stopped, and uses nothing, unless
    /// tasks leave by themselves ([`Model::leaving_when_done`](crate::Model::leaving_when_done)).
    Finished {
        /// The task that is done.
        task: TaskId,
        /// The attempt that has done it.
        attempt: Attempt,
    },
    /// A checkpoint of a task that stands still when it is told to.
    Due {
        /// The task that is to be checkpointed.
        task: TaskId,
        /// The attempt at it that is under way.
        attempt: Attempt,
        /// What of its work the checkpoint is to hold.
        done: Ppm,
    },
    /// A checkpoint is complete.
    Checkpointed {
        /// The task that it is of.
        task: TaskId,
        /// The attempt that took it.
        attempt: Attempt,
        /// What of the work it holds.
        done: Ppm,
        /// Memory of the task.
        memory: Bytes,
    },
    /// Credits changed how fast it runs.
    CreditsTurned(Credits),
}

impl WorkEvent {
    /// Whom it is about.
    pub(crate) const fn about_attempt(&self) -> Option<(TaskId, Attempt)> {
        match *self {
            Self::Finished { task, attempt }
            | Self::Due { task, attempt, .. }
            | Self::Checkpointed { task, attempt, .. } => Some((task, attempt)),
            Self::CreditsTurned(_) => None,
        }
    }
}

/// How far a task of a [`Model`](crate::Model) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelProgress {
    /// Work done, as the time it takes on this VM at full speed.
    pub done: Span,
    /// All of its work, likewise.
    pub runtime: Span,
    /// The work stands still, for a checkpoint or a move, for this much longer.
    pub hold: Option<Span>,
    /// The time at which all its work was done, once [`Model::step_until`](crate::Model::step_until) has said so.
    pub finished: Option<Time>,
}

/// Why a task can't be seated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// Every vCPU's slot of that tier is taken.
    #[error("all {0} vCPUs are taken")]
    NoCpu(u32),
    /// One of the vCPUs it names is taken, named twice or not there.
    #[error("vCPU {0} is taken, named twice or not there")]
    Taken(u32),
    /// The memory that it needs isn't free.
    #[error("it needs {need}, {free} is free")]
    NoMemory {
        /// The memory that the task needs.
        need: Bytes,
        /// The VM's memory that no other task has.
        free: Bytes,
    },
}
