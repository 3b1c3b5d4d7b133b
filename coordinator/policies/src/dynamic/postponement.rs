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

/// Moments closer than this are the same.
const GRAIN: Span = Span::from_secs(1);

impl BagScheduler {
    /// Migrates what can't wait and asks to be woken when the rest can't.
    ///
    /// Two kinds of tasks wait: those of hibernated VMs, and those of spot VMs that run but,
    /// resumed late, will end too late to be saved from another hibernation.
    ///
    /// The last moment is found by trying Algorithm 4 in thought: the latest time at which all of
    /// them, and those of every other spot VM still busy then, should it hibernate too, still find
    /// on-demand VMs that are done with them by D. If those of the others don't even now, they are
    /// left out. When it comes, all that wait are migrated together, as they were in thought.
    pub(crate) fn postpone(&mut self, turn: &mut Turn<'_>) {
        if !self.floor.machines.values().any(|m| is_waiting(&self.floor, turn.now, m)) {
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

    /// Migrates all that wait, as Algorithm 4 has it, if that leaves everything safe from further
    /// hibernations; else to on-demand VMs only.
    fn migrate_waiting(&mut self, turn: &mut Turn<'_>) {
        let mut trial = self.clone();
        let mut decisions = Vec::new();
        trial.migrate_waiting_to(&mut Turn { now: turn.now, out: &mut decisions }, true);
        if survivable(&trial.floor, turn.now) {
            *self = trial;
            turn.out.append(&mut decisions);
        } else {
            self.migrate_waiting_to(turn, false);
        }
    }

    /// Tasks that run leave with a checkpoint, and only if another VM has a place for them in
    /// time.
    fn migrate_waiting_to(&mut self, turn: &mut Turn<'_>, spot: bool) {
        let attempts = Attempts { burst: self.parts.burst, spot };
        let now = turn.now;
        let mut waiting: Vec<(VmId, Affected, bool)> = Vec::new();
        for (&vm, machine) in &self.floor.machines {
            let frozen = is_hibernated(machine);
            let late = late_tasks(&self.floor, now, machine);
            let goes = |a: &Affected| frozen || late.contains(&a.task);
            waiting.extend(self.affected(vm).into_iter().filter(goes).map(|a| (vm, a, frozen)));
        }
        let mut order: Vec<_> = waiting.iter().map(|(_, a, _)| (a.task, a.ran)).collect();
        self.floor.sort_affected(&mut order);
        let mut sites = self.floor.sites(now);
        let mut placed = BTreeSet::new();
        for (task, _) in order {
            let choice = self.floor.choose(&sites, task, attempts);
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
        self.migrate(turn, waiting.into_iter().map(|(_, a, _)| a).collect(), spot);
    }
}

/// Whether every task could still be saved if all spot VMs hibernated, whenever they do. That is
/// worst for a task just before it ends; the packing can make it worse earlier, so the other
/// moments at which something changes are tried too.
fn survivable(floor: &Floor, now: Time) -> bool {
    let spot = floor.machines.values().filter(|m| is_busy_spot(m));
    let mut moments = vec![now];
    for (_, end, start) in spot.flat_map(|m| ends(floor, now, m)) {
        moments.extend([start, end - Span::from_micros(1)]);
    }
    moments.retain(|&at| at >= now);
    moments.sort();
    moments.dedup();
    moments.into_iter().all(|at| feasible(floor, now, at, true))
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

/// The latest time to begin to migrate; `now` if that is already too late.
fn latest(floor: &Floor, now: Time) -> Time {
    let worst_case = feasible(floor, now, now, true);
    let works = |at: Time| feasible(floor, now, at, worst_case);
    let (mut early, mut late) = (now, floor.deadline().max(now));
    if !works(early) {
        return now;
    }
    while late.since(early) > GRAIN {
        let middle = early + Span::from_micros(late.since(early).as_micros() / 2);
        if works(middle) { early = middle } else { late = middle }
    }
    early
}

/// Whether migrations that begin at `at` still end all tasks concerned by D.
fn feasible(floor: &Floor, now: Time, at: Time, worst_case: bool) -> bool {
    let mut tasks: Vec<(TaskId, bool)> = Vec::new();
    for machine in floor.machines.values() {
        if is_hibernated(machine) {
            tasks.extend(machine.running.iter().map(|r| (r.task, true)));
            tasks.extend(machine.queue.iter().map(|q| (q.task, false)));
        } else if is_busy_spot(machine) && (worst_case || is_waiting(floor, now, machine)) {
            tasks.extend(unfinished(floor, now, machine, at));
        }
    }
    floor.sort_affected(&mut tasks);
    let mut sites = rescuers(floor, now, at);
    let attempts = Attempts { burst: false, spot: false };
    tasks.into_iter().all(|(task, _)| {
        let Some(choice) = floor.choose(&sites, task, attempts) else { return false };
        if choice.slot.end > floor.deadline() {
            return false;
        }
        floor.settle_in(&mut sites, task, &choice);
        true
    })
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

/// The regular on-demand VMs there will be at `at`: those still busy then, and all that could be
/// launched.
fn rescuers(floor: &Floor, now: Time, at: Time) -> Vec<Site> {
    let mut sites = Vec::new();
    for (&vm, machine) in &floor.machines {
        let regular = machine.market == Market::OnDemand && floor.kind(machine).burstable.is_none();
        if regular && machine.takes_work() && machine.has_work() {
            let mut site = floor.site(now, vm, machine);
            if site.packing.last_end() > at {
                site.packing.not_before(at);
                sites.push(site);
            }
        }
    }
    for (id, _) in floor.problem.regular(Market::OnDemand) {
        let new = || floor.new_site(at, id, Market::OnDemand, Class::New);
        sites.extend(std::iter::repeat_with(new).take(floor.launchable(id, Market::OnDemand)));
    }
    sites
}
