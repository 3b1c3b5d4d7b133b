//! Tasks that follow others: when they come due, and who hears of it.

use std::collections::VecDeque;

use dormouse_model::{Followers, Notice, Task};
use dormouse_units::{TaskId, Time};

use crate::run::Run;
use crate::tasks::TaskState;
use crate::timers::Timer;

/// What each task of a workflow still waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workflow {
    followers: Followers,
    /// The number of tasks that each task follows and that are not done, by task; empty without tasks
    /// that follow others.
    unfinished: Vec<u32>,
}

impl Workflow {
    pub(crate) fn new(tasks: &[Task]) -> Self {
        let followers = Followers::new(tasks);
        Self { unfinished: followers.before().to_vec(), followers }
    }

    /// Counts a task as done; the tasks that follow nothing else that is not done, in ascending order.
    fn finished(&mut self, task: TaskId) -> Vec<TaskId> {
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

impl Run {
    /// The run begins: in a workflow, tasks that are submitted later and follow none come due then.
    pub(crate) fn begin_workflow(&mut self, notices: &mut VecDeque<Notice>) {
        let first = self.workflow.unfinished.iter().zip((0..).map(TaskId::new));
        let first = first.filter(|(before, _)| **before == 0).map(|(_, task)| task);
        let later: Vec<TaskId> =
            first.filter(|&task| self.setup.submitted(task) > Time::ZERO).collect();
        for task in later {
            self.due_once_submitted(Time::ZERO, task, notices);
        }
    }

    /// A task is done: those that follow it and nothing else that is not done are due.
    pub(crate) fn followers_are_due(
        &mut self,
        now: Time,
        task: TaskId,
        notices: &mut VecDeque<Notice>,
    ) {
        for follower in self.workflow.finished(task) {
            self.due_once_submitted(now, follower, notices);
        }
    }

    fn due_once_submitted(&mut self, now: Time, task: TaskId, notices: &mut VecDeque<Notice>) {
        let submitted = self.setup.submitted(task);
        match submitted > now {
            true => self.timers.set(submitted, Timer::Due(task)),
            false => notices.push_back(Notice::TaskDue { task }),
        }
    }

    /// Why a task of the bag can't start yet, in words; `None`: it can.
    pub(crate) fn why_not_due(&self, now: Time, task: TaskId) -> Option<String> {
        let submitted = self.setup.submitted(task);
        if now < submitted {
            return Some(format!("{task} is submitted at {submitted}, now it is {now}"));
        }
        let after = &self.setup.bag.tasks.get(task.get() as usize)?.after;
        let is_open = |before: &&TaskId| {
            self.tasks.get(**before).is_none_or(|record| record.state != TaskState::Finished)
        };
        let before = after.iter().find(is_open)?;
        Some(format!("{task} follows {before}, which is not done"))
    }
}
