//! Tasks of a modelled VM, and the events of their work.

use dormouse_units::{Attempt, Bytes, Cpus, Credits, Mode, Ppm, Span, TaskId, Tier, Time, Usage};

/// Work of a task on a modelled VM.
#[derive(Clone, Debug)]
pub struct ModelTask {
    /// The task to run.
    pub task: TaskId,
    /// The attempt at the task.
    pub attempt: Attempt,
    /// Memory that the task needs.
    pub memory: Bytes,
    /// Run time of the whole work on this VM at full speed.
    pub runtime: Span,
    /// Part of the task's work that is done before the task starts.
    pub done: Ppm,
    /// CPU mode of the task: burst or baseline.
    pub mode: Mode,
    /// vCPU of each of the task's processes. For a task of one process it may be empty: then, or if the slot of its
    /// vCPU isn't free, the task gets the first free slot.
    pub on: Cpus,
    /// Tier of the task's slots.
    pub tier: Tier,
    /// CPU usage of each of the task's processes on a processor of its own.
    pub usage: Usage,
    /// Parts of the work at which checkpoints are taken, ascending.
    pub checkpoints: Vec<Ppm>,
    /// Time for which the task is stopped for each checkpoint.
    pub checkpoint_cost: Span,
    /// Whether the task is stopped as soon as a checkpoint is due, or when the caller says so.
    pub hold: CheckpointHold,
}

/// When a task is stopped for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointHold {
    /// The task is stopped as soon as the checkpoint is due, for the checkpoint's cost.
    #[default]
    WhenDue,
    /// The task is stopped when [`VmModel::hold_task`](crate::VmModel::hold_task) is called, for the time given in that
    /// call.
    WhenTold,
}

/// Event that happens on a modelled VM while its time advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkEvent {
    /// A task has finished its work. The task keeps its seats, and uses nothing, until it is stopped, unless tasks
    /// leave by themselves ([`VmModel::leaving_when_done`](crate::VmModel::leaving_when_done)).
    Finished {
        /// The finished task.
        task: TaskId,
        /// The attempt that finished.
        attempt: Attempt,
    },
    /// A task has reached a checkpoint position, and the caller is to say when it is stopped for the checkpoint.
    Due {
        /// The task to be checkpointed.
        task: TaskId,
        /// The attempt to be checkpointed.
        attempt: Attempt,
        /// Part of the work that the checkpoint is to hold.
        done: Ppm,
    },
    /// A checkpoint is complete.
    Checkpointed {
        /// The checkpointed task.
        task: TaskId,
        /// The attempt whose checkpoint it is.
        attempt: Attempt,
        /// Part of the work that the checkpoint holds.
        done: Ppm,
        /// Memory of the task.
        memory: Bytes,
    },
    /// The VM's speed changed because of its credits; the new balance of credits.
    CreditsTurned(Credits),
}

impl WorkEvent {
    /// Returns the attempt that the event concerns; `None`: the event concerns the VM.
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
    /// All work of the task, as time on this VM at full speed.
    pub runtime: Span,
    /// Time for which the task is still stopped for a checkpoint or a move; `None` if it isn't.
    pub hold: Option<Span>,
    /// Time at which all the task's work was done; `None` until [`VmModel::step_until`](crate::VmModel::step_until) has
    /// returned [`WorkEvent::Finished`] for the task.
    pub finished: Option<Time>,
}

/// Reasons why a task can't be seated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// Every slot of the tier is occupied; the number of vCPUs of the VM.
    #[error("all {0} vCPUs are taken")]
    NoCpu(u32),
    /// A vCPU that the task names (its number is given) is occupied, is named twice, or doesn't exist.
    #[error("vCPU {0} is taken, named twice or does not exist")]
    Taken(u32),
    /// The VM has less free memory than the task needs.
    #[error("it needs {need} of memory, but {free} is free")]
    NoMemory {
        /// Memory that the task needs.
        need: Bytes,
        /// Memory of the VM that no other task has.
        free: Bytes,
    },
}
