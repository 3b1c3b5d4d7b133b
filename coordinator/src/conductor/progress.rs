//! Progress of a run, for observers.

use std::collections::BTreeSet;
use std::time::Duration;

use dormouse_cloud::ProviderVm;
use dormouse_engine::TaskRecord;
use dormouse_units::HostId;
use tokio::time::Instant;

use super::ConductorState;
use super::returning::ReturningWorkers;
use crate::status::progress::{PostedProgress, RunProgress};

/// Largest age of the progress that is shown while the scheduler decides.
const POST_EVERY: Duration = Duration::from_millis(20);

impl ConductorState {
    pub(super) fn current_progress(&self) -> RunProgress {
        let tasks = self.run.setup().bag.tasks.len() + self.jobs;
        let tasks = tasks + self.door.outside_count();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let on_hosts = self.returning.as_ref().map(ReturningWorkers::workers_back);
        let (running, vms) = match on_hosts {
            None => (self.run.tasks().on_vms(), self.run.provider().alive_vms().count()),
            Some(back) => self.running_on(back),
        };
        RunProgress {
            now: self.run.over_at().unwrap_or_else(|| self.clock.show_now()),
            begun: self.begun,
            tasks: count(tasks),
            completed: u32::try_from(self.run.tasks().finished_count()).unwrap_or(u32::MAX),
            running: count(running),
            vms: count(vms),
            workers: count(self.roster.alive_count()),
            workers_wanted: self.plan.workers,
            awaited: self.returning.as_ref().map(ReturningWorkers::awaited_workers),
            cost: self.run.owed_now(self.clock.show_now()),
            counts: *self.run.counts(),
            over: self.run.over_at().is_some(),
        }
    }

    /// Counts the tasks on VMs of these hosts, and these VMs.
    fn running_on(&self, hosts: &BTreeSet<HostId>) -> (usize, usize) {
        let is_there = |vm: &ProviderVm| hosts.contains(&vm.host);
        let provider = self.run.provider();
        let vms = provider.alive_vms().filter(|(_, vm)| is_there(vm)).count();
        let on = |task: &&TaskRecord| {
            task.vm().and_then(|vm| provider.find_vm(vm)).is_some_and(is_there)
        };
        (self.run.tasks().iter().filter(on).count(), vms)
    }

    /// Posts the progress before the scheduler decides, unless it was posted a moment ago.
    pub(super) fn post_progress(&self) {
        if self.board.borrow().at.elapsed() >= POST_EVERY {
            self.board.send_replace(PostedProgress {
                progress: self.current_progress(),
                at: Instant::now(),
            });
        }
    }

    pub(super) fn show_progress(&self) {
        let now = self.current_progress();
        if let Some(progress) = &self.progress {
            progress.send_replace(now);
        }
    }
}
