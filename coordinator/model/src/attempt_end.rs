//! Ends of attempts at users' own programs, extracted from the steps of a run.

use std::sync::Arc;

use dormouse_units::{Attempt, TaskId};

use crate::{Event, Notice, ProgramEnd, Report, Step};

/// End of an attempt at a user's own program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramAttemptEnd {
    /// The task that was attempted.
    pub task: TaskId,
    /// The attempt that is over.
    pub attempt: Attempt,
    /// True if the task is done with this attempt.
    pub finished: bool,
    /// End of the program, with its outputs.
    pub end: Arc<ProgramEnd>,
}

/// Collects the ends of attempts at users' own programs from a run's steps. Each end comes in two steps:
/// first the attempt's account with the program's end, then the report that the task finished or failed.
#[derive(Debug, Default)]
pub struct AttemptEnds {
    known: Option<(TaskId, Attempt, Arc<ProgramEnd>)>,
}

impl AttemptEnds {
    /// Takes a step of the run; returns the end of an attempt that this step completes, if there is one.
    pub fn take_step(&mut self, step: &Step) -> Option<ProgramAttemptEnd> {
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
        Some(ProgramAttemptEnd { task, attempt, finished, end })
    }
}
