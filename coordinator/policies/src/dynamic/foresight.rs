//! Foresight of the work that spot VMs will still have at any moment, and of whether on-demand VMs
//! could then take over all of it by the deadline D.
//!
//! The exact answer is a trial run of Algorithm 4. But there are as many moments to ask about as
//! tasks, and each trial takes as many steps: most questions are answered by a bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_cloud::Market;
use dormouse_units::{Ppm, Span, TaskId, Time, VmId};

use super::floor::Floor;
use super::lateness::{ends, is_busy_spot, is_hibernated, late_among};
use super::rescue::{Order, Placed, Rescue, UNABLE, is_gone};
use super::rescuers::{Counted, Rescuers};
use super::sites::{Class, Site};
use crate::problem::KindId;

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

impl Whose {
    const fn has(self, waits: bool) -> bool {
        match self {
            Self::All => true,
            Self::Waiting => waits,
            Self::Others => !waits,
        }
    }
}

/// A task of a spot VM.
#[derive(Clone, Copy, Debug)]
struct Burden {
    task: TaskId,
    /// Place of the task's row in [`Foresight::lengths`].
    row: usize,
    /// When the task starts if nothing happens; for a task that waits on a hibernated VM: never.
    start: Time,
    /// When the task ends if nothing happens; on a hibernated VM: never.
    end: Time,
    waits: bool,
    /// Whether a checkpoint keeps a part of the task's work.
    kept: bool,
    /// Time that the task takes on the slowest of the types that could take it over; [`UNABLE`] if
    /// it can't run on one of them.
    slowest: Span,
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
        whose.has(self.waits) && self.end > at
    }
}

/// The part of a [`Burden`] that a bound asks for: all tasks are gone through for each moment.
#[derive(Clone, Copy, Debug)]
struct BurdenEnd {
    end: Time,
    slowest: Span,
    waits: bool,
    /// Index in [`Foresight::tasks`].
    place: u32,
}

impl BurdenEnd {
    fn is_left(&self, at: Time, whose: Whose) -> bool {
        whose.has(self.waits) && self.end > at
    }
}

/// The spot VMs' tasks and the on-demand VMs that could take them over, as of one moment.
pub(crate) struct Foresight<'a> {
    floor: &'a Floor,
    /// The tasks, the longest first.
    tasks: Vec<Burden>,
    /// The tasks, those with most work left first.
    by_left: Vec<BurdenEnd>,
    /// The types of the VMs that could take tasks over.
    kinds: Vec<KindId>,
    /// Time that each task takes on each of these types, in rows by task; [`UNABLE`] where it can't
    /// run.
    lengths: Vec<Span>,
    /// D, or the earliest time by which any of the tasks has to be done.
    horizon: Time,
    /// On-demand VMs that are there and all that could be launched.
    rescuers: Rescuers,
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
        let mut found: Vec<Burden> = Vec::new();
        let mut lengths: Vec<Span> = Vec::new();
        let mut moments = Vec::new();
        let mut note = |task: TaskId, start: Time, end: Time, waits: bool| {
            let row = lengths.len();
            let length = |&kind: &KindId| {
                let on = (kind, Market::OnDemand);
                floor.remaining(task, on, dormouse_units::Mode::Burst).unwrap_or(UNABLE)
            };
            lengths.extend(kinds.iter().map(length));
            let of_task = &lengths[row..];
            let slowest = of_task.iter().copied().max().unwrap_or_default();
            let able = of_task.iter().copied().filter(|length| *length != UNABLE);
            let fastest = able.min().unwrap_or_default();
            let kept = floor.task(task).done > Ppm::ZERO;
            found.push(Burden { task, row, start, end, waits, kept, slowest, fastest });
        };
        for machine in floor.machines.values() {
            if is_hibernated(machine) {
                machine.running.iter().for_each(|r| note(r.task, Time::ZERO, NEVER, true));
                machine.queue.iter().for_each(|q| note(q.task, NEVER, NEVER, true));
            } else if is_busy_spot(machine) {
                let ends = ends(floor, now, machine);
                let late = late_among(floor, machine, &ends);
                for (task, end, start) in ends {
                    moments.push(end - Span::from_micros(1));
                    note(task, start, end, late.contains(&task));
                }
            }
        }
        moments.retain(|&at| at >= now);
        moments.sort_unstable();
        moments.dedup();
        let tasks = by_length(floor, &found);
        let by_left = by_left(floor, &tasks);
        let work_from = work_from(&tasks);
        let limits = tasks.iter().map(|burden| floor.limit(burden.task));
        let horizon = limits.min().unwrap_or_else(|| floor.deadline());
        Self {
            floor,
            horizon,
            tasks,
            by_left,
            kinds,
            lengths,
            rescuers: Rescuers::new(floor, rescuers),
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
        let placed =
            self.places::<_, Vec<Placed>>(at, &self.rescuers, Whose::Waiting, |placed| placed);
        let Some(placed) = placed else { return false };
        let sites = self.rescuers.sites.iter();
        let mut sites: Vec<_> = sites.map(|site| later(self.floor, site, at)).collect();
        for Placed { site, task, length } in placed {
            if let Some(site) = sites.get_mut(site) {
                site.packing.push(length, self.floor.problem.memory(task));
                site.class = Class::Busy;
            }
        }
        let sites = Rescuers::new(self.floor, sites);
        let from = self.moments.partition_point(|&moment| moment < at);
        self.first_failure(&self.moments[from..], &sites, Whose::Others).is_none()
    }

    /// Index of the first of these moments, in ascending order, at which the tasks left can't be
    /// taken over.
    ///
    /// What is certain for the tasks left at one moment on the VMs as they are at a later one is
    /// certain for all moments between: there are no more tasks, and no vCPU is free later.
    fn first_failure(&self, moments: &[Time], sites: &Rescuers, whose: Whose) -> Option<usize> {
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
        self.compare(moments, &sites.sites, whose, found);
        found
    }

    fn holds(&self, at: Time, sites: &Rescuers, whose: Whose) -> bool {
        self.certain(at, at, sites, whose) || self.fit(at, sites, whose)
    }

    /// Whether Algorithm 4 finds all tasks left at `at` a place in time.
    fn fit(&self, at: Time, sites: &Rescuers, whose: Whose) -> bool {
        self.places::<(), ()>(at, sites, whose, |_| ()).is_some()
    }

    /// Places the tasks left at `at` as Algorithm 4 would or, if one then ends after D, each where
    /// it ends first, and collects what `kept` makes of each placement. `None` if a task still ends
    /// after D.
    fn places<K, All: FromIterator<K>>(
        &self,
        at: Time,
        sites: &Rescuers,
        whose: Whose,
        kept: impl Fn(Placed) -> K,
    ) -> Option<All> {
        if self.work_left(at, whose).least > sites.room(at, self.floor.deadline()) {
            return None;
        }
        self.count();
        let place = |rescue: &mut Rescue<'_>, burden: &Burden, order| {
            let lengths = &self.lengths[burden.row..][..self.kinds.len()];
            rescue.place(burden.task, lengths, order).map(&kept)
        };
        let attempts = || {
            let mut rescue = Rescue::new(self.floor, &self.kinds, &sites.sites, at);
            // Tasks with a checkpoint that run until then go first.
            let is_kept = |b: &Burden| b.kept && b.start < at;
            let (first, then) = (self.tasks.iter(), self.tasks.iter());
            let all = first.filter(|b| is_kept(b)).chain(then.filter(|b| !is_kept(b)));
            all.filter(|b| b.is_left(at, whose))
                .map(|b| place(&mut rescue, b, Order::Attempts))
                .collect::<Option<_>>()
        };
        let soonest = || {
            let mut rescue = Rescue::new(self.floor, &self.kinds, &sites.sites, at);
            let left = self.by_left.iter().filter(|left| left.is_left(at, whose));
            let left = left.map(|left| &self.tasks[left.place as usize]);
            left.map(|b| place(&mut rescue, b, Order::Soonest)).collect()
        };
        attempts().or_else(soonest)
    }

    /// Whether the tasks left at `from` can certainly be taken over at `at` or before. False says
    /// nothing.
    ///
    /// Let every task take its longest time on any type, and go to the vCPU that is free first.
    /// Then no vCPU is free sooner than if each task goes where it ends first, whatever it takes
    /// there; and neither more tasks nor later vCPUs ever make a vCPU free sooner.
    fn certain(&self, from: Time, at: Time, sites: &Rescuers, whose: Whose) -> bool {
        let deadline = self.horizon;
        let left = || self.by_left.iter().filter(|left| left.is_left(from, whose));
        let (mut vcpus, mut room, mut soonest) = (0_usize, 0_u128, deadline);
        sites.free_at(at, Counted::Certain, |free, n| {
            if free < deadline {
                vcpus += n;
                room += n as u128 * u128::from(deadline.since(free).as_micros());
                soonest = soonest.min(free);
            }
        });
        if vcpus == 0 {
            return left().next().is_none();
        }
        if self.work_left(from, whose).most > room {
            return false;
        }
        self.count();
        // If a task were late, all vCPUs would be busy with the tasks before it until D less its
        // length.
        let (mut work, mut fits) = (0_u128, true);
        for BurdenEnd { slowest, .. } in left() {
            if *slowest == UNABLE || soonest + *slowest > deadline {
                return false;
            }
            let length = u128::from(slowest.as_micros());
            fits &= work + vcpus as u128 * length <= room;
            work += length;
        }
        if fits {
            return true;
        }
        let mut free_first = Vec::with_capacity(vcpus);
        sites.free_at(at, Counted::Certain, |free, n| {
            if free < deadline {
                free_first.extend(std::iter::repeat_n(Reverse(free), n));
            }
        });
        let mut free_first = BinaryHeap::from(free_first);
        left().all(|left| {
            let Some(mut first) = free_first.peek_mut() else { return false };
            first.0 += left.slowest;
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
}

/// Whether every task could still be saved if all spot VMs hibernated, whenever they do.
pub(crate) fn survivable(floor: &Floor, now: Time) -> bool {
    Foresight::new(floor, now).survivable(now)
}

/// Whether all tasks can still be saved once a task has moved from the queue of an on-demand VM to a
/// spot VM.
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

fn work_from(tasks: &[Burden]) -> Vec<(Time, [Work; 2])> {
    let of = |b: &Burden| {
        let most = if b.slowest == UNABLE { 0 } else { u128::from(b.slowest.as_micros()) };
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

/// The tasks, the longest first.
fn by_length(floor: &Floor, found: &[Burden]) -> Vec<Burden> {
    let mut of_task: Vec<Option<u32>> = vec![None; floor.problem.tasks()];
    for (place, burden) in (0_u32..).zip(found) {
        if let Some(of_task) = of_task.get_mut(burden.task.get() as usize) {
            *of_task = Some(place);
        }
    }
    let place = |task: &TaskId| of_task.get(task.get() as usize).copied().flatten();
    let places = floor.problem.by_length().iter().filter_map(place);
    places.map(|place| found[place as usize]).collect()
}

/// The tasks, those with most work left first, from tasks that come the longest first.
fn by_left(floor: &Floor, tasks: &[Burden]) -> Vec<BurdenEnd> {
    let work_left = |b: &Burden| {
        let whole = floor.problem.longest(b.task);
        if b.kept { whole.saturating_sub(whole.part(floor.task(b.task).done)) } else { whole }
    };
    let all = (0_u32..).zip(tasks).map(|(place, b)| {
        let left = BurdenEnd { end: b.end, slowest: b.slowest, waits: b.waits, place };
        (b.kept, (Reverse(work_left(b)), b.task), left)
    });
    let (kept, mut by_left): (Vec<_>, Vec<_>) = all.partition(|(kept, ..)| *kept);
    // Most tasks are in order already, and the sort takes hardly any time for those.
    by_left.extend(kept);
    by_left.sort_by_key(|(_, key, _)| *key);
    by_left.into_iter().map(|(.., left)| left).collect()
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
        super::sites::WAYS[1..].iter().any(|&way| {
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
