//! What a record comes to: its figures.

use dormouse_units::{Money, Time};

use super::{Record, VmHistory};

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

    /// The number of tasks that are over whose programs did not end well, or gave a wrong answer.
    #[must_use]
    pub fn programs_failed(&self) -> usize {
        self.tasks.iter().filter(|task| task.program_failed).count()
    }

    /// The number of tasks that are finished by their workers' word alone.
    #[must_use]
    pub fn reported(&self) -> usize {
        self.tasks.iter().filter(|task| task.finished.is_some() && task.reported).count()
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
