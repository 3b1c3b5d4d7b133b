//! Postponed migrations (HADS): a migration waits for a resume as long as the deadline allows.

use std::collections::BTreeSet;

use dormouse_cloud::Market;
use dormouse_model::Decision;
use dormouse_units::{Span, Time, VmId};

use super::cluster_view::{ClusterView, DecisionContext};
use super::lateness::{is_busy_spot, is_hibernated, late_tasks, task_ends};
use super::migration::AffectedTask;
use super::scheduled_vm::ScheduledVm;
use super::scheduler::BagScheduler;
use super::sites::{ChosenSite, PlacementAttempts, WAYS};
use super::takeover_forecast::{TakeoverForecast, is_survivable};
use super::token::WakeupPurpose;

/// Precision of the last moment to migrate.
pub(super) const GRAIN: Span = Span::from_secs(1);

impl BagScheduler {
    /// Migrates the tasks that can't wait, or requests a wake-up at the last moment to migrate.
    ///
    /// Two kinds of tasks wait: those of hibernated VMs, and those of spot VMs that run but,
    /// resumed late, will end too late to be saved from another hibernation.
    ///
    /// The last moment is found by trial runs of Algorithm 4: the latest time at which on-demand VMs can still finish all waiting
    /// tasks by D. They must also be able to finish the tasks of every other spot VM, should it hibernate before or after. If there
    /// is no such time, the tasks are migrated now: to wait for a resume could then cost the deadline. All waiting tasks are
    /// migrated together.
    pub(crate) fn postpone_migrations(&mut self, context: &mut DecisionContext<'_>) {
        let waits = self.view.machines.values().any(|m| is_waiting(&self.view, context.now, m));
        if !waits && is_survivable(&self.view, context.now) {
            return;
        }
        let latest = latest_migration(
            &self.view,
            &TakeoverForecast::new(&self.view, context.now),
            context.now,
        );
        if latest <= context.now + GRAIN {
            self.migrate_waiting(context);
        } else if self.migrate_at != Some(latest) {
            self.migrate_at = Some(latest);
            context.ask_for_wakeup(latest, WakeupPurpose::Migrate);
        }
    }

    /// Migrates all waiting tasks so that everything ends by D whichever spot VMs hibernate next.
    /// Where that is impossible, running spot VMs give up their tasks too, those that would end
    /// last first. If that doesn't help either, only the waiting tasks go, in time if possible.
    fn migrate_waiting(&mut self, context: &mut DecisionContext<'_>) {
        let mut second_best: Option<(bool, Self, Vec<Decision>)> = None;
        let mut leaving = BTreeSet::new();
        loop {
            for way in WAYS {
                let mut trial = self.clone();
                let mut decisions = Vec::new();
                let mut then = DecisionContext { now: context.now, out: &mut decisions };
                trial.migrate_waiting_to(&mut then, way, &leaving);
                let in_time = trial.unplaced.is_empty() && in_time(&trial.view, context.now);
                if in_time && is_survivable(&trial.view, context.now) {
                    *self = trial;
                    return context.out.append(&mut decisions);
                }
                if leaving.is_empty() && !second_best.as_ref().is_some_and(|(good, ..)| *good) {
                    second_best = Some((in_time, trial, decisions));
                }
            }
            let stays = |vm: &VmId| !leaving.contains(vm);
            let spot = self.view.machines.iter().filter(|(vm, m)| is_busy_spot(m) && stays(vm));
            let last =
                spot.max_by_key(|(_, m)| self.view.expected_packing(context.now, m).last_end());
            let Some((&vm, _)) = last else { break };
            leaving.insert(vm);
        }
        if let Some((_, trial, mut decisions)) = second_best {
            *self = trial;
            context.out.append(&mut decisions);
        }
    }

    /// Migrates the waiting tasks and those of the VMs in `leaving`. Running tasks leave with a
    /// checkpoint, and only if another VM has a place for them in time.
    fn migrate_waiting_to(
        &mut self,
        context: &mut DecisionContext<'_>,
        way: PlacementAttempts,
        leaving: &BTreeSet<VmId>,
    ) {
        let now = context.now;
        let mut waiting: Vec<(VmId, AffectedTask, bool)> = Vec::new();
        // Tasks that leave a running VM do not come back to it.
        let mut avoid = leaving.clone();
        for (&vm, machine) in &self.view.machines {
            let frozen = is_hibernated(machine);
            let late = late_tasks(&self.view, now, machine);
            if !late.is_empty() {
                avoid.insert(vm);
            }
            let goes = |a: &AffectedTask| frozen || late.contains(&a.task) || leaving.contains(&vm);
            waiting
                .extend(self.affected_tasks(vm).into_iter().filter(goes).map(|a| (vm, a, frozen)));
        }
        let mut order: Vec<_> = waiting.iter().map(|(_, a, _)| (a.task, a.ran)).collect();
        self.view.sort_affected(&mut order, way);
        let mut sites = self.view.all_sites(now);
        sites.retain(|site| site.vm.is_none_or(|vm| !avoid.contains(&vm)));
        let mut placed = BTreeSet::new();
        for (task, _) in order {
            let choice = self.view.choose_site(&sites, task, way);
            let safe = |c: &ChosenSite| self.view.is_safe(&sites[c.site], task, c.slot);
            if let Some(choice) = choice.filter(safe) {
                self.view.settle_in(&mut sites, task, &choice);
                placed.insert(task);
            }
        }
        waiting.retain(|(_, a, frozen)| *frozen || placed.contains(&a.task));
        for (vm, a, frozen) in &waiting {
            self.view.withdraw_task(context, *vm, a.task, !frozen);
        }
        let affected = waiting.into_iter().map(|(_, a, _)| a).collect();
        self.migrate_by(context, affected, way, &avoid);
    }
}

/// True if on-demand VMs end all their tasks by D.
fn in_time(view: &ClusterView, now: Time) -> bool {
    let mut stay = view.machines.values().filter(|m| m.market == Market::OnDemand);
    stay.all(|m| task_ends(view, now, m).iter().all(|&(task, end, _)| end <= view.latest_end(task)))
}

fn is_waiting(view: &ClusterView, now: Time, machine: &ScheduledVm) -> bool {
    (is_hibernated(machine) && machine.has_work()) || !late_tasks(view, now, machine).is_empty()
}

/// The latest time to begin migrating at which everything still ends by D even if other spot VMs hibernate
/// at any moment before or after; `now` if there is no such time.
pub(crate) fn latest_migration(
    view: &ClusterView,
    ahead: &TakeoverForecast<'_>,
    now: Time,
) -> Time {
    if !ahead.all_at_once(now) {
        return now;
    }
    // Between two ends of tasks there is less and less time for the same work.
    let too_late = ahead.first_too_late();
    let good = &ahead.moments[..too_late.unwrap_or(ahead.moments.len())];
    let good = good.last().map_or(now, |&moment| moment);
    let bad = too_late.and_then(|i| ahead.moments.get(i).copied());
    let end = view.deadline().max(now);
    let last = bisect_times(good, bad.map_or(end, |bad| bad.min(end)), |at| ahead.all_at_once(at));
    if ahead.others_after(last) {
        return last;
    }
    bisect_times(now, last, |at| ahead.others_after(at))
}

/// The last time at which the condition `holds` is true, to within `GRAIN`. The condition must be true at
/// `good` and false at `bad`.
fn bisect_times(mut good: Time, mut bad: Time, holds: impl Fn(Time) -> bool) -> Time {
    while bad.since(good) > GRAIN {
        let middle = good + Span::from_micros(bad.since(good).as_micros() / 2);
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}
