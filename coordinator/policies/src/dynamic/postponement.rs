//! HADS: a migration waits for a resume as long as the deadline allows.

use std::collections::BTreeSet;

use dormouse_cloud::Market;
use dormouse_units::{Span, TaskId, Time, VmId};

use super::floor::{Floor, Turn};
use super::machine::{Machine, Phase};
use super::migration::Affected;
use super::scheduler::BagScheduler;
use super::sites::{Attempts, Choice, Class, Site};
use super::token::Purpose;
use crate::Decision;

/// Moments closer than this are the same.
const GRAIN: Span = Span::from_secs(1);

/// Ways to place what is migrated, the first that does it tried first.
const WAYS: [Attempts; 3] = [
    Attempts { burst: false, spot: true, soonest: false },
    Attempts { burst: false, spot: false, soonest: false },
    Attempts { burst: false, spot: false, soonest: true },
];

impl BagScheduler {
    /// Migrates what can't wait and asks to be woken when the rest can't.
    ///
    /// Two kinds of tasks wait: those of hibernated VMs, and those of spot VMs that run but,
    /// resumed late, will end too late to be saved from another hibernation.
    ///
    /// The last moment is found by trying Algorithm 4 in thought: the latest time at which all of
    /// them find on-demand VMs that are done with them by D, and so do the tasks of every other
    /// spot VM should it hibernate too, before or after. If there is no such time, it is now: what
    /// waits for a resume then could cost the deadline. All that wait are migrated together.
    pub(crate) fn postpone(&mut self, turn: &mut Turn<'_>) {
        let waits = self.floor.machines.values().any(|m| is_waiting(&self.floor, turn.now, m));
        if !waits && survivable(&self.floor, turn.now) {
            return;
        }
        let latest = latest(&self.floor, turn.now);
        if latest <= turn.now + GRAIN {
            self.migrate_waiting(turn);
        } else if self.migrate_at != Some(latest) {
            self.migrate_at = Some(latest);
            turn.wake(latest, Purpose::Migrate);
        }
    }

    /// Migrates all that wait so that everything ends by D whatever spot VMs hibernate next. Where
    /// that can't be, spot VMs that run give up their tasks too, those that would end last first;
    /// if that doesn't help either, only what waits goes, in time if it can.
    fn migrate_waiting(&mut self, turn: &mut Turn<'_>) {
        let mut second_best: Option<(bool, Self, Vec<Decision>)> = None;
        let mut leaving = BTreeSet::new();
        loop {
            for way in WAYS {
                let mut trial = self.clone();
                let mut decisions = Vec::new();
                let mut then = Turn { now: turn.now, out: &mut decisions };
                trial.migrate_waiting_to(&mut then, way, &leaving);
                let in_time = trial.unplaced.is_empty() && in_time(&trial.floor, turn.now);
                if in_time && survivable(&trial.floor, turn.now) {
                    *self = trial;
                    return turn.out.append(&mut decisions);
                }
                if leaving.is_empty() && !second_best.as_ref().is_some_and(|(good, ..)| *good) {
                    second_best = Some((in_time, trial, decisions));
                }
            }
            let stays = |vm: &VmId| !leaving.contains(vm);
            let spot = self.floor.machines.iter().filter(|(vm, m)| is_busy_spot(m) && stays(vm));
            let last = spot.max_by_key(|(_, m)| self.floor.packing(turn.now, m).last_end());
            let Some((&vm, _)) = last else { break };
            leaving.insert(vm);
        }
        if let Some((_, trial, mut decisions)) = second_best {
            *self = trial;
            turn.out.append(&mut decisions);
        }
    }

    /// Tasks that run leave with a checkpoint, and only if another VM has a place for them in
    /// time.
    fn migrate_waiting_to(&mut self, turn: &mut Turn<'_>, way: Attempts, leaving: &BTreeSet<VmId>) {
        let now = turn.now;
        let mut waiting: Vec<(VmId, Affected, bool)> = Vec::new();
        // What leaves a VM that runs does not come back to it.
        let mut avoid = leaving.clone();
        for (&vm, machine) in &self.floor.machines {
            let frozen = is_hibernated(machine);
            let late = late_tasks(&self.floor, now, machine);
            if !late.is_empty() {
                avoid.insert(vm);
            }
            let goes = |a: &Affected| frozen || late.contains(&a.task) || leaving.contains(&vm);
            waiting.extend(self.affected(vm).into_iter().filter(goes).map(|a| (vm, a, frozen)));
        }
        let mut order: Vec<_> = waiting.iter().map(|(_, a, _)| (a.task, a.ran)).collect();
        self.floor.sort_affected(&mut order, way);
        let mut sites = self.floor.sites(now);
        sites.retain(|site| site.vm.is_none_or(|vm| !avoid.contains(&vm)));
        let mut placed = BTreeSet::new();
        for (task, _) in order {
            let choice = self.floor.choose(&sites, task, way);
            let safe = |c: &Choice| self.floor.safe(&sites[c.site], task, c.slot);
            if let Some(choice) = choice.filter(safe) {
                self.floor.settle_in(&mut sites, task, &choice);
                placed.insert(task);
            }
        }
        waiting.retain(|(_, a, frozen)| *frozen || placed.contains(&a.task));
        for (vm, a, frozen) in &waiting {
            self.floor.withdraw(turn, *vm, a.task, !frozen);
        }
        let affected = waiting.into_iter().map(|(_, a, _)| a).collect();
        self.migrate_by(turn, affected, way, &avoid);
    }
}

/// Whether on-demand VMs end all they have by D.
fn in_time(floor: &Floor, now: Time) -> bool {
    let mut stay = floor.machines.values().filter(|m| m.market == Market::OnDemand);
    stay.all(|m| !m.has_work() || floor.packing(now, m).last_end() <= floor.deadline())
}

/// Whether every task could still be saved if all spot VMs hibernated, whenever they do.
fn survivable(floor: &Floor, now: Time) -> bool {
    let then = just_before_ends(floor, now).into_iter();
    [now].into_iter().chain(then).all(|at| all_at_once(floor, now, at))
}

/// Whether a task may move from an on-demand VM's queue to a spot VM.
pub(crate) fn survives_theft(
    floor: &Floor,
    now: Time,
    (victim, thief): (VmId, VmId),
    task: TaskId,
) -> bool {
    let mut after = floor.clone();
    let queued = after.machines.get_mut(&victim).and_then(|machine| {
        let at = machine.queue.iter().position(|q| q.task == task)?;
        machine.queue.remove(at)
    });
    if let Some((machine, queued)) = after.machines.get_mut(&thief).zip(queued) {
        machine.queue.push_back(queued);
    }
    survivable(&after, now)
}

fn is_hibernated(machine: &Machine) -> bool {
    matches!(machine.phase, Phase::Hibernated { .. })
}

fn is_busy_spot(machine: &Machine) -> bool {
    machine.market == Market::Spot && machine.takes_work() && machine.has_work()
}

/// The tasks of a running spot VM that end too late for it to be safe (see [`Floor::safe`]).
fn late_tasks(floor: &Floor, now: Time, machine: &Machine) -> Vec<TaskId> {
    if !is_busy_spot(machine) {
        return Vec::new();
    }
    let longest = machine.tasks().map(|t| floor.problem.longest(t)).max().unwrap_or(Span::ZERO);
    let limit = floor.deadline() - (longest + floor.problem.boot);
    unfinished(floor, now, machine, limit).into_iter().map(|(task, _)| task).collect()
}

fn is_waiting(floor: &Floor, now: Time, machine: &Machine) -> bool {
    (is_hibernated(machine) && machine.has_work()) || !late_tasks(floor, now, machine).is_empty()
}

/// The latest time to begin to migrate, such that other spot VMs may hibernate at any time before
/// and after and everything still ends by D; `now` if no time is that safe.
fn latest(floor: &Floor, now: Time) -> Time {
    if !all_at_once(floor, now, now) {
        return now;
    }
    // Between two ends of tasks there is ever less time for the same work.
    let (mut good, mut bad) = (now, floor.deadline().max(now));
    for moment in just_before_ends(floor, now) {
        if !all_at_once(floor, now, moment) {
            bad = bad.min(moment);
            break;
        }
        good = moment;
    }
    let last = bisect(good, bad, |at| all_at_once(floor, now, at));
    if others_after(floor, now, last) {
        return last;
    }
    bisect(now, last, |at| others_after(floor, now, at))
}

/// The last time for which something holds, if it holds at `good` and at some time ceases to.
fn bisect(mut good: Time, mut bad: Time, holds: impl Fn(Time) -> bool) -> Time {
    while bad.since(good) > GRAIN {
        let middle = good + Span::from_micros(bad.since(good).as_micros() / 2);
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}

/// The moments from `now` on at which a hibernation would undo most: tasks about to end.
fn just_before_ends(floor: &Floor, now: Time) -> Vec<Time> {
    let spot = floor.machines.values().filter(|m| is_busy_spot(m));
    let ends = spot.flat_map(|m| ends(floor, now, m)).map(|(_, end, _)| end);
    let mut moments: Vec<_> = ends.map(|end| end - Span::from_micros(1)).collect();
    moments.retain(|&at| at >= now);
    moments.sort();
    moments.dedup();
    moments
}

/// Whether all tasks of spot VMs, hibernated or running till then, can be migrated at `at`.
fn all_at_once(floor: &Floor, now: Time, at: Time) -> bool {
    let mut tasks = Vec::new();
    for machine in floor.machines.values() {
        if is_hibernated(machine) {
            tasks.extend(frozen(machine));
        } else if is_busy_spot(machine) {
            tasks.extend(unfinished(floor, now, machine, at));
        }
    }
    fit(floor, &mut rescuers(floor, now, at), tasks)
}

/// Whether, once those that wait were migrated at `at`, the other spot VMs can hibernate too.
fn others_after(floor: &Floor, now: Time, at: Time) -> bool {
    let mut waiting = Vec::new();
    for machine in floor.machines.values() {
        if is_hibernated(machine) {
            waiting.extend(frozen(machine));
        } else {
            let late = late_tasks(floor, now, machine);
            let there = unfinished(floor, now, machine, at).into_iter();
            waiting.extend(there.filter(|(task, _)| late.contains(task)));
        }
    }
    let gone: BTreeSet<_> = waiting.iter().map(|&(task, _)| task).collect();
    let mut sites = rescuers(floor, now, at);
    if !fit(floor, &mut sites, waiting) {
        return false;
    }
    let moments = just_before_ends(floor, now);
    moments.into_iter().filter(|&moment| moment >= at).all(|moment| {
        let spot = floor.machines.values().filter(|m| is_busy_spot(m));
        let left = spot.flat_map(|m| unfinished(floor, now, m, moment));
        let left: Vec<_> = left.filter(|(task, _)| !gone.contains(task)).collect();
        let mut then: Vec<_> = sites.iter().map(|site| later(floor, site, moment)).collect();
        fit(floor, &mut then, left)
    })
}

/// The tasks of a hibernated VM, and whether they ran.
fn frozen(machine: &Machine) -> Vec<(TaskId, bool)> {
    let running = machine.running.iter().map(|r| (r.task, true));
    running.chain(machine.queue.iter().map(|q| (q.task, false))).collect()
}

/// Puts the tasks where Algorithm 4 would or, if one then ends after D, each where it ends first.
/// False if one still does.
fn fit(floor: &Floor, sites: &mut [Site], mut tasks: Vec<(TaskId, bool)>) -> bool {
    let before = sites.to_vec();
    WAYS[1..].iter().any(|&way| {
        sites.clone_from_slice(&before);
        floor.sort_affected(&mut tasks, way);
        tasks.iter().all(|&(task, _)| {
            let Some(choice) = floor.choose(sites, task, way) else { return false };
            floor.settle_in(sites, task, &choice);
            choice.slot.end <= floor.deadline()
        })
    })
}

/// What a rescuer is at a later moment: one that has nothing to do by then may have been given
/// back, and boots again.
fn later(floor: &Floor, site: &Site, at: Time) -> Site {
    if site.class == Class::New || site.packing.last_end() <= at {
        return floor.new_site(at, site.kind, Market::OnDemand, Class::New);
    }
    let mut site = site.clone();
    site.packing.not_before(at);
    site
}

/// The tasks of a VM that have not ended by `at`, and whether they run then.
fn unfinished(floor: &Floor, now: Time, machine: &Machine, at: Time) -> Vec<(TaskId, bool)> {
    let late = ends(floor, now, machine).into_iter().filter(|&(_, end, _)| end > at);
    late.map(|(task, _, start)| (task, start < at)).collect()
}

/// When the tasks of a VM will end and, if they wait, start.
fn ends(floor: &Floor, now: Time, machine: &Machine) -> Vec<(TaskId, Time, Time)> {
    let mut packing = floor.running_only(now, machine);
    let running = machine.running.iter().map(|r| (r.task, r.ends, Time::ZERO));
    let mut tasks: Vec<_> = running.collect();
    for q in &machine.queue {
        if let Some(length) = floor.remaining(q.task, machine.kind, q.mode) {
            let slot = packing.push(length, floor.problem.memory(q.task));
            tasks.push((q.task, slot.end, slot.start));
        }
    }
    tasks
}

/// The regular on-demand VMs there will be at `at`: those there now, and all that could be
/// launched.
fn rescuers(floor: &Floor, now: Time, at: Time) -> Vec<Site> {
    let mut sites = Vec::new();
    for (&vm, machine) in &floor.machines {
        let regular = machine.market == Market::OnDemand && floor.kind(machine).burstable.is_none();
        if regular && machine.takes_work() {
            let mut site = floor.site(now, vm, machine);
            // Not one to be launched, even if it has nothing to do yet.
            site.class = Class::Busy;
            sites.push(later(floor, &site, at));
        }
    }
    for (id, _) in floor.problem.regular(Market::OnDemand) {
        let new = || floor.new_site(at, id, Market::OnDemand, Class::New);
        sites.extend(std::iter::repeat_with(new).take(floor.launchable(id, Market::OnDemand)));
    }
    sites
}
