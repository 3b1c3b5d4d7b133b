//! The burst migration procedure (Burst-HADS Algorithm 4).

use std::collections::BTreeSet;

use dormouse_model::StartReason;
use dormouse_units::{TaskId, VmId};

use super::cluster_view::DecisionContext;
use super::scheduled_vm::QueuedTask;
use super::scheduler::BagScheduler;
use super::sites::{PlacementAttempts, PlacementSite};
use super::token::WakeupPurpose;
use crate::GivenUp;

/// A task that has to leave its VM, or whose VM is gone, and that needs another VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AffectedTask {
    pub(crate) task: TaskId,
    /// True if the task was running on a vCPU.
    pub(crate) ran: bool,
    pub(crate) reason: StartReason,
}

impl BagScheduler {
    /// All tasks of a VM that takes no more work, with the reason [`StartReason::Migrated`].
    pub(crate) fn affected_tasks(&self, vm: VmId) -> Vec<AffectedTask> {
        let Some(machine) = self.view.machines.get(&vm) else { return Vec::new() };
        let reason = StartReason::Migrated;
        let running =
            machine.running.iter().map(|r| AffectedTask { task: r.task, ran: true, reason });
        let waiting =
            machine.queue.iter().map(|q| AffectedTask { task: q.task, ran: false, reason });
        running.chain(waiting).collect()
    }

    /// Takes all tasks off a frozen VM and migrates them.
    pub(crate) fn migrate_frozen(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let affected = self.affected_tasks(vm);
        for a in &affected {
            self.view.withdraw_task(context, vm, a.task, false);
        }
        self.migrate_tasks(context, affected, true);
    }

    /// Finds a place for each task, also among spot VMs if `spot`, and starts the tasks that can
    /// start at once.
    pub(crate) fn migrate_tasks(
        &mut self,
        context: &mut DecisionContext<'_>,
        affected: Vec<AffectedTask>,
        spot: bool,
    ) {
        let way =
            PlacementAttempts { burst: self.parts.burst, spot, soonest: false, arrival: None };
        self.migrate_by(context, affected, way, &BTreeSet::new());
    }

    /// Like [`BagScheduler::migrate_tasks`], but makes only the attempts of Algorithm 4 that `way` selects, and uses
    /// no VM in `avoid`.
    pub(crate) fn migrate_by(
        &mut self,
        context: &mut DecisionContext<'_>,
        affected: Vec<AffectedTask>,
        way: PlacementAttempts,
        avoid: &BTreeSet<VmId>,
    ) {
        if affected.is_empty() {
            return self.retry_later(context);
        }
        let mut order: Vec<_> = affected.iter().map(|a| (a.task, a.ran)).collect();
        self.view.sort_affected(&mut order, way);
        let mut sites = self.view.all_sites(context.now);
        sites.retain(|site| site.vm.is_none_or(|vm| !avoid.contains(&vm)));
        let mut touched = BTreeSet::new();
        for (task, ran) in order {
            let reason = affected
                .iter()
                .find(|a| a.task == task)
                .map_or(StartReason::Migrated, |a| a.reason);
            let Some(choice) = self.view.choose_site(&sites, task, way) else {
                self.unplaced.push(AffectedTask { task, ran, reason });
                continue;
            };
            let PlacementSite { kind, market, vm, .. } = sites[choice.site];
            let vm = vm.unwrap_or_else(|| self.view.launch(context, kind, market));
            self.view.settle_in(&mut sites, task, &choice);
            sites[choice.site].vm = Some(vm);
            self.view.enqueue_task(vm, QueuedTask { task, mode: choice.mode, reason });
            touched.insert(vm);
        }
        for vm in touched {
            self.view.dispatch_tasks(context, vm);
        }
        self.retry_later(context);
    }

    /// Tries again to place the tasks without a place, if there are any.
    pub(crate) fn place_unplaced(&mut self, context: &mut DecisionContext<'_>) {
        if !self.unplaced.is_empty() {
            let waiting = std::mem::take(&mut self.unplaced);
            self.migrate_tasks(context, waiting, true);
        }
    }

    /// Requests a wake-up if tasks are left without a VM: there may be room by then.
    fn retry_later(&mut self, context: &mut DecisionContext<'_>) {
        if self.unplaced.is_empty() || self.retry_armed {
            return;
        }
        self.retry_armed = true;
        let wait = self.retry_after.times(1 << self.retries.min(32));
        context.ask_for_wakeup(context.now + wait, WakeupPurpose::Retry);
    }

    /// Tries refused launches again, up to a number of times in a row; then gives up the tasks that
    /// still have no place.
    pub(crate) fn retry_launches(&mut self, context: &mut DecisionContext<'_>) {
        self.retry_armed = false;
        self.retries += 1;
        self.view.refused.clear();
        if self.retries <= self.max_retries {
            return self.place_unplaced(context);
        }
        for a in std::mem::take(&mut self.unplaced) {
            self.given_up.get_or_insert(GivenUp::Launches);
            self.view.give_up(a.task);
        }
        self.end_if_settled(context);
    }
}
