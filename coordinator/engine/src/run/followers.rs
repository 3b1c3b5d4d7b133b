//! Tasks that follow others: the times at which they become due, and the notices about that.

use std::collections::VecDeque;

use dormouse_model::Notice;
use dormouse_units::{TaskId, Time};

use super::Run;
use crate::tasks::TaskState;
use crate::timers::RunTimer;

impl Run {
    /// Begins the workflow with the run: tasks without predecessors that are submitted later become due at their
    /// times.
    pub(super) fn begin_workflow(&mut self, notices: &mut VecDeque<Notice>) {
        let first = self.workflow.first_tasks();
        let later: Vec<TaskId> =
            first.filter(|&task| self.setup.submission_time(task) > Time::ZERO).collect();
        for task in later {
            self.due_once_submitted(Time::ZERO, task, notices);
        }
    }

    /// Makes those followers of a finished task due that wait for no other task.
    pub(super) fn followers_are_due(
        &mut self,
        now: Time,
        task: TaskId,
        notices: &mut VecDeque<Notice>,
    ) {
        for follower in self.workflow.task_finished(task) {
            self.due_once_submitted(now, follower, notices);
        }
    }

    fn due_once_submitted(&mut self, now: Time, task: TaskId, notices: &mut VecDeque<Notice>) {
        let submitted = self.setup.submission_time(task);
        match submitted > now {
            true => self.timers.set_timer(submitted, RunTimer::Due(task)),
            false => notices.push_back(Notice::TaskDue { task }),
        }
    }

    /// Explains in words why a task of the bag can't start yet; `None`: it can.
    pub(super) fn why_not_due(&self, now: Time, task: TaskId) -> Option<String> {
        let submitted = self.setup.submission_time(task);
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
