//! The ends of programs of the user's own, as the steps of a run tell them.

use std::sync::Arc;

use dormouse_units::{Attempt, TaskId};

use crate::{Event, Notice, OwnEnd, Report, Step};

/// How an attempt at a task of the user's own ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// The task that was attempted.
    pub task: TaskId,
    /// The attempt that is over.
    pub attempt: Attempt,
    /// Whether the task is done with this attempt.
    pub finished: bool,
    /// How its program ended, and what it left.
    pub end: Arc<OwnEnd>,
}

/// Finds the ends in the steps of a run: what is known of one is a step of its own, before that of the report.
#[derive(Debug, Default)]
pub struct AttemptEnds {
    known: Option<(TaskId, Attempt, Arc<OwnEnd>)>,
}

impl AttemptEnds {
    /// The end that is complete with this step.
    pub fn see(&mut self, step: &Step) -> Option<AttemptEnd> {
        let Event::Machine { report, .. } = &step.event else { return None };
        let of = match *report {
            Report::Ledger { task, attempt, ref own, .. } => {
                self.known = own.clone().map(|end| (task, attempt, end));
                return None;
            }
            Report::TaskFinished { task, attempt, .. }
            | Report::TaskFailed { task, attempt, .. } => (task, attempt),
            _ => return None,
        };
        let (task, attempt, end) = self.known.take_if(|known| (known.0, known.1) == of)?;
        let is_finish = |notice: &Notice| matches!(notice, Notice::TaskFinished { task: done, .. } if *done == task);
        let finished = step.notices.iter().any(is_finish);
        Some(AttemptEnd { task, attempt, finished, end })
    }
}
