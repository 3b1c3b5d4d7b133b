//! Tasks that follow others: for how many tasks each still waits.

use dormouse_model::{Task, TaskFollowers};
use dormouse_units::TaskId;

/// Number of unfinished predecessors of each task of a workflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkflowProgress {
    followers: TaskFollowers,
    /// Unfinished predecessors by task; empty if no task follows another.
    unfinished: Vec<u32>,
}

impl WorkflowProgress {
    pub(crate) fn new(tasks: &[Task]) -> Self {
        let followers = TaskFollowers::new(tasks);
        Self { unfinished: followers.predecessor_counts().to_vec(), followers }
    }

    /// Returns the tasks without unfinished predecessors, in ascending order.
    pub(crate) fn first_tasks(&self) -> impl Iterator<Item = TaskId> {
        let first = self.unfinished.iter().zip((0..).map(TaskId::new));
        first.filter(|(before, _)| **before == 0).map(|(_, task)| task)
    }

    /// Records that a task is finished; returns the followers that have no unfinished predecessor left, in ascending
    /// order.
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
