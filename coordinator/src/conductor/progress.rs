//! How a run goes, for whoever looks on.

use super::ConductorState;
use crate::live::Progress;

impl ConductorState {
    pub(super) fn progress(&self) -> Progress {
        let tasks = self.run.setup().bag.tasks.len() + self.submissions.len();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Progress {
            now: self.run.over().unwrap_or_else(|| self.clock.now()),
            begun: self.begun,
            tasks: count(tasks),
            completed: u32::try_from(self.run.tasks().finished()).unwrap_or(u32::MAX),
            running: count(self.run.tasks().on_vms()),
            vms: count(self.run.provider().alive().count()),
            workers: count(self.roster.alive()),
            workers_wanted: self.plan.workers,
            cost: self.run.owed(self.clock.now()),
            counts: *self.run.counts(),
            over: self.run.over().is_some(),
        }
    }

    pub(super) fn show(&self) {
        if let Some(progress) = &self.progress {
            progress.send_replace(self.progress());
        }
    }
}
