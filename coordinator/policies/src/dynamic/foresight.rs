//! Foresight of the work that spot VMs will still have at any moment, and of whether on-demand VMs
//! could then take over all of it by the deadline D.
//!
//! The exact answer is a trial run of Algorithm 4. But there are as many moments to ask about as
//! tasks, and each trial takes as many steps: most questions are answered by a bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_cloud::Market;
use dormouse_units::{Ppm, Span, TaskId, Time};

use super::floor::Floor;

use super::postponement::{ends, is_busy_spot, is_hibernated, late_tasks};
use super::rescue::{Order, Placed, Rescue, is_gone};
use super::sites::{Class, Site};

/// Selection of the spot VMs' tasks that a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The tasks of all spot VMs.
    All,
    /// The tasks that wait: those of hibernated VMs, and those that will be done too late to be
    /// safe.
    Waiting,
    /// The tasks that do not wait.
    Others,
}

/// A task of a spot VM.
#[derive(Clone, Copy, Debug)]
struct Burden {
    task: TaskId,
    /// When the task starts if nothing happens; for a task that waits on a hibernated VM: never.
    start: Time,
    /// When the task ends if nothing happens; on a hibernated VM: never.
    end: Time,
    waits: bool,
    /// Whether a checkpoint keeps a part of the task's work.
    kept: bool,
    /// Time that the task takes on the slowest of the types that could take it over; `None` if it
    /// can't run on one of them.
    slowest: Option<Span>,
    /// Time that the task takes on the fastest of these types.
    fastest: Span,
}

/// The work of tasks in microseconds: each on the type where it takes longest, and where it takes
/// least.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    most: u128,
    least: u128,
}

impl std::ops::Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { most: self.most + other.most, least: self.least + other.least }
    }
}

const NEVER: Time = Time::from_micros(u64::MAX);

impl Burden {
    fn is_left(&self, at: Time, whose: Whose) -> bool {
        let meant = match whose {
            Whose::All => true,
            Whose::Waiting => self.waits,
            Whose::Others => !self.waits,
        };
        meant && self.end > at
    }
}

/// The spot VMs' tasks and the on-demand VMs that could take them over, as of one moment.
pub(crate) struct Foresight<'a> {
    floor: &'a Floor,
    /// The tasks, the longest first.
    tasks: Vec<Burden>,
    /// The tasks, those with most work left first.
    by_left: Vec<Burden>,
    /// D, or the earliest time by which any of the tasks has to be done.
    horizon: Time,
    /// On-demand VMs that are there and all that could be launched.
    rescuers: Vec<Site>,
    /// The moments at which a hibernation would undo most: just before a task ends.
    pub(crate) moments: Vec<Time>,
    /// The ends of the tasks, each with the work of the tasks that end then or later: of those that
    /// wait, and of the others.
    work_from: Vec<(Time, [Work; 2])>,
    /// Number of tasks that have been looked at, in all questions.
    #[cfg(test)]
    pub(crate) steps: std::cell::Cell<usize>,
}

impl<'a> Foresight<'a> {
    pub(crate) fn new(floor: &'a Floor, now: Time) -> Self {
        let rescuers = rescuers(floor, now);
        let mut kinds: Vec<_> = rescuers.iter().map(|site| site.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut of_task: Vec<Option<Burden>> = vec![None; floor.problem.tasks()];
        let mut moments = Vec::new();
        let mut note = |task: TaskId, start: Time, end: Time, waits: bool| {
            let on = || {
                let offers = kinds.iter().map(|&kind| (kind, Market::OnDemand));
                offers.map(|on| floor.remaining(task, on, dormouse_units::Mode::Burst))
            };
            let slowest = on().try_fold(Span::ZERO, |most, length| Some(most.max(length?)));
            let fastest = on().flatten().min().unwrap_or_default();
            let kept = floor.task(task).done > Ppm::ZERO;
            if let Some(place) = of_task.get_mut(task.get() as usize) {
                *place = Some(Burden { task, start, end, waits, kept, slowest, fastest });
            }
        };
        for machine in floor.machines.values() {
            if is_hibernated(machine) {
                machine.running.iter().for_each(|r| note(r.task, Time::ZERO, NEVER, true));
                machine.queue.iter().for_each(|q| note(q.task, NEVER, NEVER, true));
            } else if is_busy_spot(machine) {
                let late = late_tasks(floor, now, machine);
                for (task, end, start) in ends(floor, now, machine) {
                    moments.push(end - Span::from_micros(1));
                    note(task, start, end, late.contains(&task));
                }
            }
        }
        moments.retain(|&at| at >= now);
        moments.sort();
        moments.dedup();
        let known = |task: &TaskId| of_task.get(task.get() as usize).copied().flatten();
        let tasks: Vec<_> = floor.problem.by_length().iter().filter_map(known).collect();
        let by_left = by_left(floor, &tasks);
        let work_from = work_from(&tasks);
        let limits = tasks.iter().map(|burden| floor.limit(burden.task));
        let horizon = limits.min().unwrap_or_else(|| floor.deadline());
        Self {
            floor,
            horizon,
            tasks,
            by_left,
            rescuers,
            moments,
            work_from,
            #[cfg(test)]
            steps: std::cell::Cell::default(),
        }
    }

    /// Whether every task could still be saved if all spot VMs hibernated, whenever they do.
    pub(crate) fn survivable(&self, now: Time) -> bool {
        self.all_at_once(now)
            && self.first_failure(&self.moments, &self.rescuers, Whose::All).is_none()
    }

    /// Whether all tasks of spot VMs, hibernated or running until then, can be migrated at `at`.
    pub(crate) fn all_at_once(&self, at: Time) -> bool {
        self.holds(at, &self.rescuers, Whose::All)
    }

    /// Index of the first of the moments at which the tasks of spot VMs can't be migrated.
    pub(crate) fn first_too_late(&self) -> Option<usize> {
        self.first_failure(&self.moments, &self.rescuers, Whose::All)
    }

    /// Whether the other spot VMs can hibernate too, once the tasks that wait were migrated at
    /// `at`.
    pub(crate) fn others_after(&self, at: Time) -> bool {
        let mut sites: Vec<_> = self.rescuers.iter().map(|s| later(self.floor, s, at)).collect();
        let placed = self.places::<_, Vec<Placed>>(at, &sites, Whose::Waiting, |placed| placed);
        let Some(placed) = placed else { return false };
        for Placed { site, task, length } in placed {
            if let Some(site) = sites.get_mut(site) {
                site.packing.push(length, self.floor.problem.memory(task));
                site.class = Class::Busy;
            }
        }
        let from = self.moments.partition_point(|&moment| moment < at);
        self.first_failure(&self.moments[from..], &sites, Whose::Others).is_none()
    }

    /// Index of the first of these moments, in ascending order, at which the tasks left can't be
    /// taken over.
    ///
    /// What is certain for the tasks left at one moment on the VMs as they are at a later one is
    /// certain for all moments between: there are no more tasks, and no vCPU is free later.
    fn first_failure(&self, moments: &[Time], sites: &[Site], whose: Whose) -> Option<usize> {
        let (mut i, mut step, mut found) = (0, moments.len(), None);
        while i < moments.len() && found.is_none() {
            let last = i.saturating_add(step).min(moments.len()) - 1;
            if self.certain(moments[i], moments[last], sites, whose) {
                (i, step) = (last + 1, step.saturating_mul(2));
            } else if last > i {
                step = (last - i).div_ceil(2);
            } else if self.fit(moments[i], sites, whose) {
                i += 1;
            } else {
                found = Some(i);
            }
        }
        #[cfg(test)]
        self.compare(moments, sites, whose, found);
        found
    }

    fn holds(&self, at: Time, sites: &[Site], whose: Whose) -> bool {
        self.certain(at, at, sites, whose) || self.fit(at, sites, whose)
    }

    /// Whether Algorithm 4 finds all tasks left at `at` a place in time.
    fn fit(&self, at: Time, sites: &[Site], whose: Whose) -> bool {
        self.places::<(), ()>(at, sites, whose, |_| ()).is_some()
    }

    /// Places the tasks left at `at` as Algorithm 4 would or, if one then ends after D, each where
    /// it ends first, and collects what `kept` makes of each placement. `None` if a task still ends
    /// after D.
    fn places<K, All: FromIterator<K>>(
        &self,
        at: Time,
        sites: &[Site],
        whose: Whose,
        kept: impl Fn(Placed) -> K,
    ) -> Option<All> {
        let free = self.free_at(at, sites, false);
        if self.work_left(at, whose).least > room(&free, self.floor.deadline()) {
            return None;
        }
        self.count();
        let attempts = || {
            let mut rescue = Rescue::new(self.floor, sites, at);
            // Tasks with a checkpoint that run until then go first.
            let is_kept = |b: &Burden| b.kept && b.start < at;
            let (first, then) = (self.tasks.iter(), self.tasks.iter());
            let all = first.filter(|b| is_kept(b)).chain(then.filter(|b| !is_kept(b)));
            all.filter(|b| b.is_left(at, whose))
                .map(|b| rescue.place(b.task, Order::Attempts).map(&kept))
                .collect::<Option<_>>()
        };
        let soonest = || {
            let mut rescue = Rescue::new(self.floor, sites, at);
            let left = self.by_left.iter().filter(|b| b.is_left(at, whose));
            left.map(|b| rescue.place(b.task, Order::Soonest).map(&kept)).collect()
        };
        attempts().or_else(soonest)
    }

    /// Whether the tasks left at `from` can certainly be taken over at `at` or before. False says
    /// nothing.
    ///
    /// Let every task take its longest time on any type, and go to the vCPU that is free first.
    /// Then no vCPU is free sooner than if each task goes where it ends first, whatever it takes
    /// there; and neither more tasks nor later vCPUs ever make a vCPU free sooner.
    fn certain(&self, from: Time, at: Time, sites: &[Site], whose: Whose) -> bool {
        let deadline = self.horizon;
        let mut free = self.free_at(at, sites, true);
        free.retain(|&free| free < deadline);
        let room = room(&free, deadline);
        let Some(&soonest) = free.iter().min() else {
            return !self.by_left.iter().any(|b| b.is_left(from, whose));
        };
        if self.work_left(from, whose).most > room {
            return false;
        }
        self.count();
        let vcpus = free.len() as u128;
        let left = || self.by_left.iter().filter(|b| b.is_left(from, whose));
        // If a task were late, all vCPUs would be busy with the tasks before it until D less its
        // length.
        let (mut work, mut fits) = (0_u128, true);
        for burden in left() {
            let Some(slowest) = burden.slowest else { return false };
            let length = u128::from(slowest.as_micros());
            if soonest + slowest > deadline {
                return false;
            }
            fits &= work + vcpus * length <= room;
            work += length;
        }
        if fits {
            return true;
        }
        let mut vcpus: BinaryHeap<_> = free.into_iter().map(Reverse).collect();
        left().all(|burden| {
            let Some((mut first, length)) = vcpus.peek_mut().zip(burden.slowest) else {
                return false;
            };
            first.0 += length;
            first.0 <= deadline
        })
    }

    /// The work of the tasks left at `at`.
    fn work_left(&self, at: Time, whose: Whose) -> Work {
        let first = self.work_from.partition_point(|&(end, _)| end <= at);
        let [waiting, others] = self.work_from.get(first).map(|left| left.1).unwrap_or_default();
        match whose {
            Whose::All => waiting + others,
            Whose::Waiting => waiting,
            Whose::Others => others,
        }
    }

    /// Counts a question for which all tasks are looked at.
    fn count(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + self.tasks.len());
    }

    /// Times from which each vCPU of the VMs, as they are at `at`, is free. With `certain`, only as
    /// many vCPUs as can be used whatever memory the tasks need, and those that are free last.
    fn free_at(&self, at: Time, sites: &[Site], certain: bool) -> Vec<Time> {
        let most = self.floor.problem.most_memory();
        let mut free = Vec::new();
        for site in sites {
            let kind = &self.floor.problem.kinds[site.kind];
            // This number of tasks always fits together, however large they are.
            let together = kind.memory_limit.filter(|_| certain).map_or(kind.vcpus, |limit| {
                usize::try_from(limit.get() / most.get().max(1)).unwrap_or(usize::MAX)
            });
            let n = together.min(kind.vcpus);
            if is_gone(site, at) {
                free.extend(std::iter::repeat_n(at + self.floor.problem.takeover_boot, n));
                continue;
            }
            let begin = free.len();
            free.extend(site.packing.free_from().map(|free| free.max(at)));
            if n < kind.vcpus {
                free[begin..].sort_by_key(|&free| Reverse(free));
                free.truncate(begin + n);
            }
        }
        free
    }
}

/// The time until `end` of vCPUs that are free from these times on, in microseconds.
fn room(free: &[Time], end: Time) -> u128 {
    free.iter().map(|&free| u128::from(end.since(free).as_micros())).sum()
}

fn work_from(tasks: &[Burden]) -> Vec<(Time, [Work; 2])> {
    let of = |b: &Burden| {
        let most = u128::from(b.slowest.unwrap_or_default().as_micros());
        let work = Work { most, least: u128::from(b.fastest.as_micros()) };
        let none = Work::default();
        (b.end, if b.waits { [work, none] } else { [none, work] })
    };
    let mut from: Vec<_> = tasks.iter().map(of).collect();
    from.sort_unstable_by_key(|&(end, _)| end);
    let mut sum = [Work::default(); 2];
    for (_, work) in from.iter_mut().rev() {
        sum = [sum[0] + work[0], sum[1] + work[1]];
        *work = sum;
    }
    from
}

/// The tasks, those with most work left first, from tasks that come the longest first.
fn by_left(floor: &Floor, tasks: &[Burden]) -> Vec<Burden> {
    let left = |b: &Burden| {
        let whole = floor.problem.longest(b.task);
        if b.kept { whole.saturating_sub(whole.part(floor.task(b.task).done)) } else { whole }
    };
    let (kept, mut by_left): (Vec<_>, Vec<_>) = tasks.iter().copied().partition(|b| b.kept);
    // Most tasks are in order already, and the sort takes hardly any time for those.
    by_left.extend(kept);
    by_left.sort_by_key(|b| (Reverse(left(b)), b.task));
    by_left
}

/// An on-demand VM as it will be at a later moment.
fn later(floor: &Floor, site: &Site, at: Time) -> Site {
    if is_gone(site, at) {
        return floor.new_site(at, site.kind, Market::OnDemand, Class::New);
    }
    let mut site = site.clone();
    site.packing.not_before(at);
    site
}

/// The regular on-demand VMs: those there now, and all that could be launched.
fn rescuers(floor: &Floor, now: Time) -> Vec<Site> {
    let mut sites = Vec::new();
    for (&vm, machine) in &floor.machines {
        let regular = machine.market == Market::OnDemand && floor.kind(machine).burstable.is_none();
        if regular && machine.takes_work() {
            let mut site = floor.site(now, vm, machine);
            // A VM that is there is not one to be launched, even if it has nothing to do yet.
            site.class = Class::Busy;
            sites.push(site);
        }
    }
    for (id, _) in floor.problem.regular(Market::OnDemand) {
        let new = || floor.new_site(now, id, Market::OnDemand, Class::New);
        let n = floor.launchable(id, Market::OnDemand).min(floor.problem.tasks());
        sites.extend(std::iter::repeat_with(new).take(n));
    }
    sites
}

/// The same questions answered without bounds: every test of a scheduler compares both answers.
#[cfg(test)]
impl Foresight<'_> {
    fn compare(&self, moments: &[Time], sites: &[Site], whose: Whose, found: Option<usize>) {
        if self.tasks.len() <= 60 {
            let plainly = moments.iter().position(|&at| !self.fit_plainly(at, sites, whose));
            assert_eq!(found, plainly, "{whose:?} at {moments:?}");
        }
    }

    fn fit_plainly(&self, at: Time, sites: &[Site], whose: Whose) -> bool {
        let left = self.tasks.iter().filter(|b| b.is_left(at, whose));
        let mut tasks: Vec<_> = left.map(|b| (b.task, b.start < at)).collect();
        super::postponement::WAYS[1..].iter().any(|&way| {
            let mut sites: Vec<_> = sites.iter().map(|s| later(self.floor, s, at)).collect();
            self.floor.sort_affected(&mut tasks, way);
            tasks.iter().all(|&(task, _)| {
                let Some(choice) = self.floor.choose(&sites, task, way) else { return false };
                self.floor.settle_in(&mut sites, task, &choice);
                choice.slot.end <= self.floor.limit(task)
            })
        })
    }
}
