//! How a run goes, for whoever looks on.

use std::time::{Duration, Instant};

use super::ConductorState;
use crate::progress::{Posted, Progress};

/// How old that may be which is said while the scheduler thinks.
const POST_EVERY: Duration = Duration::from_millis(20);

impl ConductorState {
    pub(super) fn progress(&self) -> Progress {
        let tasks = self.run.setup().bag.tasks.len() + self.jobs;
        let tasks = tasks + self.door.outside();
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

    /// Says how it goes before the scheduler may think again, unless it was said a moment ago.
    pub(super) fn post(&self) {
        if self.board.borrow().at.elapsed() >= POST_EVERY {
            self.board.send_replace(Posted { progress: self.progress(), at: Instant::now() });
        }
    }

    pub(super) fn show(&self) {
        let now = self.progress();
        if let Some(progress) = &self.progress {
            progress.send_replace(now);
        }
    }
}
