//! Where every task is.

use dormouse_units::{Attempt, CheckpointSeq, Ppm, Time, VmId};

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// Nowhere.
    #[default]
    Waiting,
    /// Sent to a VM, not heard of yet.
    Sent(VmId),
    /// Running, or frozen, on a VM.
    Running(VmId),
    /// Told to stop; not heard of yet.
    Stopping(VmId),
    /// Done and verified.
    Finished,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskRecord {
    /// Where it is.
    pub state: TaskState,
    /// The latest attempt; reports of earlier ones are of a former life.
    pub attempt: Attempt,
    /// Its last complete checkpoint, and what of the work that holds.
    pub kept: Option<(CheckpointSeq, Ppm)>,
    /// The attempt that took it.
    pub kept_by: Attempt,
    /// When that was sent to its VM.
    pub sent: Time,
    /// When it finished.
    pub finished: Option<Time>,
    /// CPU time of all attempts that have ended, real microseconds.
    pub real_cpu_us: u64,
}

impl TaskRecord {
    /// The VM it is on.
    #[must_use]
    pub const fn vm(&self) -> Option<VmId> {
        match self.state {
            TaskState::Sent(vm) | TaskState::Running(vm) | TaskState::Stopping(vm) => Some(vm),
            TaskState::Waiting | TaskState::Finished => None,
        }
    }
}
