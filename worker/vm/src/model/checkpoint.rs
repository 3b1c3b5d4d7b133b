//! Checkpoints that are asked for while a task runs.

use dormouse_units::{Attempt, TaskId, Time};

use super::VmModel;

impl VmModel {
    /// A task is checkpointed now: it stands still for what a checkpoint costs, which then keeps what
    /// it has done by now. One that is being taken will do. Whether the task is there and has not
    /// finished.
    pub fn checkpoint_task(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        let mut is_going_on = false;
        self.change_task(now, task, attempt, |running| is_going_on = running.checkpoint_now());
        is_going_on
    }
}
