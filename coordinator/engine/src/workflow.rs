//! Tasks that follow others: what each still waits for.

use dormouse_model::{Task, TaskFollowers};
use dormouse_units::TaskId;

/// What each task of a workflow still waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkflowProgress {
    followers: TaskFollowers,
    /// The number of tasks that each task follows and that are not done, by task; empty without tasks
    /// that follow others.
    unfinished: Vec<u32>,
}

impl WorkflowProgress {
    pub(crate) fn new(tasks: &[Task]) -> Self {
        let followers = TaskFollowers::new(tasks);
        Self { unfinished: followers.predecessor_counts().to_vec(), followers }
    }

    /// The tasks of a workflow that follow no other, or none that is not done, in ascending order.
    pub(crate) fn first_tasks(&self) -> impl Iterator<Item = TaskId> {
        let first = self.unfinished.iter().zip((0..).map(TaskId::new));
        first.filter(|(before, _)| **before == 0).map(|(_, task)| task)
    }

    /// Counts a task as done; the tasks that follow nothing else that is not done, in ascending order.
    pub(crate) fn task_finished(&mut self, task: TaskId) -> Vec<TaskId> {
        let mut free = Vec::new();
        for &follower in self.followers.of_task(task) {
            if let Some(left) = self.unfinished.get_mut(follower.get() as usize) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    free.push(follower);
                }
            }
        }
        free
    }
}
