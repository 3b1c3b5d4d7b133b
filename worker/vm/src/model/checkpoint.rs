//! Checkpoints that are requested while a task runs.

use dormouse_units::{Attempt, TaskId, Time};

use super::VmModel;

impl VmModel {
    /// Takes a checkpoint of a task: the task is stopped for the checkpoint's cost, and the checkpoint holds the work done so far.
    /// If a checkpoint of the task is under way, no other is begun. Returns false if the task isn't on the VM or has finished.
    pub fn checkpoint_task(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        let mut is_going_on = false;
        self.change_task(now, task, attempt, |running| is_going_on = running.checkpoint_now());
        is_going_on
    }
}
