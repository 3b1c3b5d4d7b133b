//! What a record comes to: its figures.

use dormouse_units::{Money, Time};

use super::{Record, TaskHistory, VmHistory};
use crate::outcome::{OutcomeTally, ProgramFailure, WorkOutcome};

impl Record {
    /// The time at which the last task was finished, if all are.
    #[must_use]
    pub fn makespan(&self) -> Option<Time> {
        self.tasks.iter().map(|t| t.finished).try_fold(Time::ZERO, |latest, t| Some(latest.max(t?)))
    }

    /// The time at which the last task finished so far was.
    #[must_use]
    pub fn last_finish(&self) -> Time {
        self.tasks.iter().filter_map(|t| t.finished).max().unwrap_or(Time::ZERO)
    }

    /// What all VMs cost.
    #[must_use]
    pub fn cost(&self) -> Money {
        self.vms.values().map(VmHistory::cost).sum()
    }

    /// The number of tasks that are finished.
    #[must_use]
    pub const fn finished(&self) -> usize {
        self.finished
    }

    /// How a task or job ended; `None`: it is open, and the run goes on.
    #[must_use]
    pub fn outcome(&self, task: &TaskHistory) -> Option<WorkOutcome> {
        if task.finished.is_none() {
            return self.over.map(|_| WorkOutcome::GivenUp);
        }
        Some(if task.program_failed {
            let own = task.attempts.iter().rev().find_map(|attempt| attempt.own.as_deref());
            WorkOutcome::Failed(ProgramFailure::from_end(own))
        } else if task.reported {
            WorkOutcome::Reported
        } else if self.speedup.is_some() {
            WorkOutcome::Verified
        } else {
            WorkOutcome::Completed
        })
    }

    /// How many tasks of the bag ended in which way.
    #[must_use]
    pub fn outcomes(&self) -> OutcomeTally {
        OutcomeTally::from_outcomes(self.tasks.iter().map(|task| self.outcome(task)))
    }

    /// The digest of all decisions, in hexadecimal; empty, where it has none.
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.as_ref().map(dormouse_engine::DecisionDigest::hex).unwrap_or_default()
    }

    /// The time at which everything is drawn to end.
    #[must_use]
    pub fn end(&self) -> Time {
        self.over.map_or(self.now, |(at, _)| at)
    }
}
