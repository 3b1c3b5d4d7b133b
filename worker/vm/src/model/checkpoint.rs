//! Checkpoints that are asked for while a task runs.

use dormouse_units::{Attempt, TaskId, Time};

use super::VmModel;

impl VmModel {
    /// Checkpoints a task: it stands still for the checkpoint's cost, and the checkpoint holds its work of now. If a
    /// checkpoint is under way, that one counts. False if the task isn't there or has finished.
    pub fn checkpoint_task(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        let mut is_going_on = false;
        self.change_task(now, task, attempt, |running| is_going_on = running.checkpoint_now());
        is_going_on
    }
}
