//! What runs on a modelled VM, and what happens to it there.

use dormouse_units::{Attempt, Bytes, Cpus, Credits, Mode, Ppm, Span, TaskId, Tier, Time, Usage};

/// Work of a task on a modelled VM.
#[derive(Clone, Debug)]
pub struct ModelTask {
    /// The task.
    pub task: TaskId,
    /// The attempt at the task.
    pub attempt: Attempt,
    /// Memory that the task needs.
    pub memory: Bytes,
    /// Run time of the whole work on this VM at full speed.
    pub runtime: Span,
    /// Part of the work that is done before it starts.
    pub done: Ppm,
    /// Mode: burst or baseline.
    pub mode: Mode,
    /// vCPU of each process of the task. For a task of one process it may be left out: with none, or if its slot isn't
    /// free, the task gets the first free slot.
    pub on: Cpus,
    /// Tier of the task's slots.
    pub tier: Tier,
    /// CPU usage of the task's processes.
    pub usage: Usage,
    /// Parts of the work at which checkpoints are taken, ascending.
    pub checkpoints: Vec<Ppm>,
    /// Time for which the task stands still for each checkpoint.
    pub checkpoint_cost: Span,
    /// Whether the task stands still as soon as a checkpoint is due, or when it is told to.
    pub hold: CheckpointHold,
}

/// When a task stands still for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointHold {
    /// The task stands still as soon as the checkpoint is due, for the checkpoint's cost.
    #[default]
    WhenDue,
    /// When [`VmModel::hold_task`](crate::VmModel::hold_task) is called, for the span given there.
    WhenTold,
}

/// Event that happens on a modelled VM by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkEvent {
    /// A task has finished its work. It keeps its seats, and uses nothing, until it is stopped, unless tasks leave by
    /// themselves ([`VmModel::leaving_when_done`](crate::VmModel::leaving_when_done)).
    Finished {
        /// The finished task.
        task: TaskId,
        /// The attempt that finished.
        attempt: Attempt,
    },
    /// A checkpoint is due of a task that stands still when it is told to.
    Due {
        /// The task to be checkpointed.
        task: TaskId,
        /// The attempt under way.
        attempt: Attempt,
        /// Part of the work that the checkpoint is to hold.
        done: Ppm,
    },
    /// A checkpoint is complete.
    Checkpointed {
        /// The checkpointed task.
        task: TaskId,
        /// The attempt that took the checkpoint.
        attempt: Attempt,
        /// Part of the work that it holds.
        done: Ppm,
        /// Memory of the task.
        memory: Bytes,
    },
    /// Credits changed the VM's speed; this is the balance.
    CreditsTurned(Credits),
}

impl WorkEvent {
    /// Returns the attempt that the event is about; `None`: it is about the VM.
    pub(crate) const fn about_attempt(&self) -> Option<(TaskId, Attempt)> {
        match *self {
            Self::Finished { task, attempt }
            | Self::Due { task, attempt, .. }
            | Self::Checkpointed { task, attempt, .. } => Some((task, attempt)),
            Self::CreditsTurned(_) => None,
        }
    }
}

/// Progress of a task of a [`VmModel`](crate::VmModel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelProgress {
    /// Work done, as time on this VM at full speed.
    pub done: Span,
    /// All work of the task, in the same unit.
    pub runtime: Span,
    /// Rest of a standstill for a checkpoint or a move.
    pub hold: Option<Span>,
    /// Time at which all work of the task was done; `None` until [`VmModel::step_until`](crate::VmModel::step_until)
    /// has returned its end.
    pub finished: Option<Time>,
}

/// Reasons why a task can't be seated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// Every slot of the tier is taken.
    #[error("all {0} vCPUs are taken")]
    NoCpu(u32),
    /// A vCPU that the task names is taken, named twice or doesn't exist.
    #[error("vCPU {0} is taken, named twice or does not exist")]
    Taken(u32),
    /// The memory that the task needs isn't free.
    #[error("it needs {need}, {free} is free")]
    NoMemory {
        /// Memory that the task needs.
        need: Bytes,
        /// Memory of the VM that no other task has.
        free: Bytes,
    },
}
