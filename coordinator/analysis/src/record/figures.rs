//! Figures of a record as a whole.

use dormouse_units::{Money, Time};

use super::{RunRecord, TaskHistory, VmHistory};
use crate::outcome::{OutcomeTally, ProgramFailure, WorkOutcome};

impl RunRecord {
    /// Time at which the last task finished; `None` if some tasks have not finished.
    #[must_use]
    pub fn makespan(&self) -> Option<Time> {
        self.tasks.iter().map(|t| t.finished).try_fold(Time::ZERO, |latest, t| Some(latest.max(t?)))
    }

    /// Latest time at which a task finished so far; zero if none has.
    #[must_use]
    pub fn last_finish(&self) -> Time {
        self.tasks.iter().filter_map(|t| t.finished).max().unwrap_or(Time::ZERO)
    }

    /// Cost of all VMs.
    #[must_use]
    pub fn cost(&self) -> Money {
        self.vms.values().map(VmHistory::cost).sum()
    }

    /// Cost of the disks of hibernated VMs, which is a part of the cost of all VMs; `None` if such disks cost nothing.
    #[must_use]
    pub fn stopped_disks_cost(&self) -> Option<Money> {
        let is_charged = self.billing.stopped_disk.is_some();
        is_charged.then(|| self.vms.values().map(|vm| vm.meter.disk_cost()).sum())
    }

    /// Cost of surplus credits, which is a part of the cost of all VMs; `None` if no VM was charged for any.
    #[must_use]
    pub fn surplus_cost(&self) -> Option<Money> {
        let cost = self.vms.values().map(|vm| vm.surcharge).sum();
        (cost > Money::ZERO).then_some(cost)
    }

    /// Number of finished tasks of the bag.
    #[must_use]
    pub const fn finished(&self) -> usize {
        self.finished
    }

    /// Outcome of a task or job; `None` while the task is open and the run continues.
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

    /// Number of tasks of the bag by outcome.
    #[must_use]
    pub fn outcomes(&self) -> OutcomeTally {
        OutcomeTally::from_outcomes(self.tasks.iter().map(|task| self.outcome(task)))
    }

    /// Digest of all decisions in hexadecimal; empty if the record keeps none.
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.as_ref().map(dormouse_engine::DecisionDigest::to_hex).unwrap_or_default()
    }

    /// End of the run, or the time of the last step: charts end here.
    #[must_use]
    pub fn end(&self) -> Time {
        self.over.map_or(self.now, |(at, _)| at)
    }
}
