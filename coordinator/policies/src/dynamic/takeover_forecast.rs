//! Forecast of the work that spot VMs will still have at any moment, and of whether on-demand VMs
//! could then take over all of it by the deadline D.
//!
//! The exact answer is a trial run of Algorithm 4. But there are as many moments to ask about as
//! tasks, and each trial takes as many steps: most questions are answered by a bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_cloud::Market;
use dormouse_units::{Ppm, Span, TaskId, Time, VmId};

use super::cluster_view::ClusterView;
use super::lateness::{is_busy_spot, is_hibernated, late_among, task_ends};
use super::sites::{PlacementSite, SiteClass};
use super::takeover_vms::{CountedVcpus, TakeoverVms};
use super::trial_fleet::{PlacementOrder, TrialFleet, TrialPlacement, UNABLE, is_gone};
use crate::problem::KindId;

/// Selects tasks of spot VMs that a check covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskSelection {
    /// The tasks of all spot VMs.
    All,
    /// Waiting tasks: those of hibernated VMs, and those that will end too late to survive another
    /// hibernation.
    Waiting,
    /// All tasks that are not waiting.
    Others,
}

impl TaskSelection {
    const fn selects_task(self, waits: bool) -> bool {
        match self {
            Self::All => true,
            Self::Waiting => waits,
            Self::Others => !waits,
        }
    }
}

/// A task of a spot VM, as the forecast sees it.
#[derive(Clone, Copy, Debug)]
struct SpotTask {
    task: TaskId,
    /// Index of the task's row in [`TakeoverForecast::lengths`].
    row: usize,
    /// Expected start if nothing unexpected happens; for a task that waits on a hibernated VM: never.
    start: Time,
    /// Expected end if nothing unexpected happens; on a hibernated VM: never.
    end: Time,
    waits: bool,
    /// True if a checkpoint keeps part of the task's work.
    kept: bool,
    /// Time that the task takes on the slowest of the types that could take it over; [`UNABLE`] if the task can't run
    /// on one of them.
    slowest: Span,
    /// Time that the task takes on the fastest of the types that could take it over.
    fastest: Span,
}

/// Total work of tasks in microseconds: with each task on its slowest type, and on its fastest.
#[derive(Clone, Copy, Debug, Default)]
struct WorkBounds {
    most: u128,
    least: u128,
}

impl std::ops::Add for WorkBounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { most: self.most + other.most, least: self.least + other.least }
    }
}

const NEVER: Time = Time::from_micros(u64::MAX);

impl SpotTask {
    fn is_left(&self, at: Time, whose: TaskSelection) -> bool {
        whose.selects_task(self.waits) && self.end > at
    }
}

/// The fields of a [`SpotTask`] that the bounds need, stored separately so that scanning all tasks is fast.
#[derive(Clone, Copy, Debug)]
struct SpotTaskEnd {
    end: Time,
    slowest: Span,
    waits: bool,
    /// Index of the task in [`TakeoverForecast::tasks`].
    place: u32,
}

impl SpotTaskEnd {
    fn is_left(&self, at: Time, whose: TaskSelection) -> bool {
        whose.selects_task(self.waits) && self.end > at
    }
}

/// The tasks of spot VMs and the on-demand VMs that could take these tasks over, as known at one moment.
pub(crate) struct TakeoverForecast<'a> {
    view: &'a ClusterView,
    /// The tasks, the longest first.
    tasks: Vec<SpotTask>,
    /// The tasks by remaining work, most first.
    by_left: Vec<SpotTaskEnd>,
    /// The types of the VMs that could take tasks over.
    kinds: Vec<KindId>,
    /// Time that each task takes on each type of `kinds`, in rows by task; [`UNABLE`] where the task can't run.
    lengths: Vec<Span>,
    /// The deadline D, or the earliest limit of any of the tasks if that limit is sooner.
    horizon: Time,
    /// On-demand VMs that exist and all that could be launched.
    rescuers: TakeoverVms,
    /// The moments at which a hibernation would undo most work: just before a task ends.
    pub(crate) moments: Vec<Time>,
    /// For each end of a task, the work of all tasks that end at that time or later: first that of waiting tasks, then
    /// that of the others.
    work_from: Vec<(Time, [WorkBounds; 2])>,
    /// Number of tasks scanned in all checks; tests measure the cost of the checks by it.
    #[cfg(test)]
    pub(crate) steps: std::cell::Cell<usize>,
}

impl<'a> TakeoverForecast<'a> {
    pub(crate) fn new(view: &'a ClusterView, now: Time) -> Self {
        let rescuers = takeover_sites(view, now);
        let mut kinds: Vec<_> = rescuers.iter().map(|site| site.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut found: Vec<SpotTask> = Vec::new();
        let mut lengths: Vec<Span> = Vec::new();
        let mut moments = Vec::new();
        let mut note = |task: TaskId, start: Time, end: Time, waits: bool| {
            let row = lengths.len();
            let length = |&kind: &KindId| {
                let on = (kind, Market::OnDemand);
                view.remaining_time(task, on, dormouse_units::Mode::Burst).unwrap_or(UNABLE)
            };
            lengths.extend(kinds.iter().map(length));
            let of_task = &lengths[row..];
            let slowest = of_task.iter().copied().max().unwrap_or_default();
            let able = of_task.iter().copied().filter(|length| *length != UNABLE);
            let fastest = able.min().unwrap_or_default();
            let kept = view.task_progress(task).done > Ppm::ZERO;
            found.push(SpotTask { task, row, start, end, waits, kept, slowest, fastest });
        };
        for machine in view.machines.values() {
            if is_hibernated(machine) {
                machine.running.iter().for_each(|r| note(r.task, Time::ZERO, NEVER, true));
                machine.queue.iter().for_each(|q| note(q.task, NEVER, NEVER, true));
            } else if is_busy_spot(machine) {
                let ends = task_ends(view, now, machine);
                let late = late_among(view, machine, &ends);
                for (task, end, start) in ends {
                    moments.push(end - Span::from_micros(1));
                    note(task, start, end, late.contains(&task));
                }
            }
        }
        moments.retain(|&at| at >= now);
        moments.sort_unstable();
        moments.dedup();
        let tasks = by_length(view, &found);
        let by_left = by_left(view, &tasks);
        let work_from = work_from(&tasks);
        let limits = tasks.iter().map(|burden| view.latest_end(burden.task));
        let horizon = limits.min().unwrap_or_else(|| view.deadline());
        Self {
            view,
            horizon,
            tasks,
            by_left,
            kinds,
            lengths,
            rescuers: TakeoverVms::new(view, rescuers),
            moments,
            work_from,
            #[cfg(test)]
            steps: std::cell::Cell::default(),
        }
    }

    /// True if every task could still end in time even if all spot VMs hibernated, at any moment.
    pub(crate) fn are_all_survivable(&self, now: Time) -> bool {
        self.all_at_once(now)
            && self.first_failure(&self.moments, &self.rescuers, TaskSelection::All).is_none()
    }

    /// True if all tasks of spot VMs can be migrated at `at`, whether their VMs are hibernated or run until then.
    pub(crate) fn all_at_once(&self, at: Time) -> bool {
        self.can_take_over(at, &self.rescuers, TaskSelection::All)
    }

    /// Index of the first moment at which the tasks of spot VMs can't be migrated in time; `None`: they always can.
    pub(crate) fn first_too_late(&self) -> Option<usize> {
        self.first_failure(&self.moments, &self.rescuers, TaskSelection::All)
    }

    /// True if, after the waiting tasks are migrated at `at`, all other tasks still end in time even if the
    /// other spot VMs hibernate as well.
    pub(crate) fn others_after(&self, at: Time) -> bool {
        let placed = self.place_tasks::<_, Vec<TrialPlacement>>(
            at,
            &self.rescuers,
            TaskSelection::Waiting,
            |placed| placed,
        );
        let Some(placed) = placed else { return false };
        let sites = self.rescuers.sites.iter();
        let mut sites: Vec<_> = sites.map(|site| site_later(self.view, site, at)).collect();
        for TrialPlacement { site, task, length } in placed {
            if let Some(site) = sites.get_mut(site) {
                site.packing.push(length, self.view.problem.task_memory(task));
                site.class = SiteClass::Busy;
            }
        }
        let sites = TakeoverVms::new(self.view, sites);
        let from = self.moments.partition_point(|&moment| moment < at);
        self.first_failure(&self.moments[from..], &sites, TaskSelection::Others).is_none()
    }

    /// Index of the first of these ascending moments at which the remaining tasks can't be taken
    /// over.
    ///
    /// If the tasks left at one moment fit the VMs as they are at a later one, they fit at all
    /// moments between: there are no more tasks, and no vCPU is free later.
    fn first_failure(
        &self,
        moments: &[Time],
        sites: &TakeoverVms,
        whose: TaskSelection,
    ) -> Option<usize> {
        let (mut i, mut step, mut found) = (0, moments.len(), None);
        while i < moments.len() && found.is_none() {
            let last = i.saturating_add(step).min(moments.len()) - 1;
            if self.is_certain(moments[i], moments[last], sites, whose) {
                (i, step) = (last + 1, step.saturating_mul(2));
            } else if last > i {
                step = (last - i).div_ceil(2);
            } else if self.fits_by_trial(moments[i], sites, whose) {
                i += 1;
            } else {
                found = Some(i);
            }
        }
        #[cfg(test)]
        self.compare_with_trials(moments, &sites.sites, whose, found);
        found
    }

    fn can_take_over(&self, at: Time, sites: &TakeoverVms, whose: TaskSelection) -> bool {
        self.is_certain(at, at, sites, whose) || self.fits_by_trial(at, sites, whose)
    }

    /// True if Algorithm 4 of the Burst-HADS paper finds places for all selected tasks of spot VMs that are unfinished at `at`,
    /// such that they end by the deadline.
    fn fits_by_trial(&self, at: Time, sites: &TakeoverVms, whose: TaskSelection) -> bool {
        self.place_tasks::<(), ()>(at, sites, whose, |_| ()).is_some()
    }

    /// Places the tasks left at `at` by Algorithm 4 or, if a task then ends after D, each task where it ends first;
    /// collects `kept` of each placement. `None` if a task still ends after D.
    fn place_tasks<K, All: FromIterator<K>>(
        &self,
        at: Time,
        sites: &TakeoverVms,
        whose: TaskSelection,
        kept: impl Fn(TrialPlacement) -> K,
    ) -> Option<All> {
        if self.work_left(at, whose).least > sites.free_time(at, self.view.deadline()) {
            return None;
        }
        self.count();
        let place = |rescue: &mut TrialFleet<'_>, burden: &SpotTask, order| {
            let lengths = &self.lengths[burden.row..][..self.kinds.len()];
            rescue.place_task(burden.task, lengths, order).map(&kept)
        };
        let attempts = || {
            let mut rescue = TrialFleet::new(self.view, &self.kinds, &sites.sites, at);
            // Tasks with a checkpoint that run until then go first.
            let is_kept = |b: &SpotTask| b.kept && b.start < at;
            let (first, then) = (self.tasks.iter(), self.tasks.iter());
            let all = first.filter(|b| is_kept(b)).chain(then.filter(|b| !is_kept(b)));
            all.filter(|b| b.is_left(at, whose))
                .map(|b| place(&mut rescue, b, PlacementOrder::Attempts))
                .collect::<Option<_>>()
        };
        let soonest = || {
            let mut rescue = TrialFleet::new(self.view, &self.kinds, &sites.sites, at);
            let left = self.by_left.iter().filter(|left| left.is_left(at, whose));
            let left = left.map(|left| &self.tasks[left.place as usize]);
            left.map(|b| place(&mut rescue, b, PlacementOrder::Soonest)).collect()
        };
        attempts().or_else(soonest)
    }

    /// True if the tasks left at `from` can certainly be taken over at `at` or earlier; false if this bound doesn't
    /// tell.
    ///
    /// The bound assumes that every task takes its longest time on any type and goes to the vCPU
    /// that is free first. No vCPU is then free sooner than if each task went where it ends first;
    /// and neither more tasks nor later vCPUs ever make a vCPU free sooner.
    fn is_certain(&self, from: Time, at: Time, sites: &TakeoverVms, whose: TaskSelection) -> bool {
        let deadline = self.horizon;
        let left = || self.by_left.iter().filter(|left| left.is_left(from, whose));
        let (mut vcpus, mut room, mut soonest) = (0_usize, 0_u128, deadline);
        sites.free_at(at, CountedVcpus::Certain, |free, n| {
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
        for SpotTaskEnd { slowest, .. } in left() {
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
        sites.free_at(at, CountedVcpus::Certain, |free, n| {
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

    /// Total work of the selected tasks of spot VMs that are expected to end after `at`.
    fn work_left(&self, at: Time, whose: TaskSelection) -> WorkBounds {
        let first = self.work_from.partition_point(|&(end, _)| end <= at);
        let [waiting, others] = self.work_from.get(first).map(|left| left.1).unwrap_or_default();
        match whose {
            TaskSelection::All => waiting + others,
            TaskSelection::Waiting => waiting,
            TaskSelection::Others => others,
        }
    }

    /// Adds the number of all tasks to the count of scanned tasks.
    fn count(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + self.tasks.len());
    }
}

/// True if every task could still end in time even if all spot VMs hibernated, at any moment.
pub(crate) fn is_survivable(view: &ClusterView, now: Time) -> bool {
    TakeoverForecast::new(view, now).are_all_survivable(now)
}

/// True if every task can still end in time after one task moved from the queue of an on-demand VM
/// to a spot VM.
pub(crate) fn survives_theft(
    view: &ClusterView,
    now: Time,
    (victim, thief): (VmId, VmId),
    task: TaskId,
) -> bool {
    let mut after = view.clone();
    let queued = after.machines.get_mut(&victim).and_then(|machine| {
        let at = machine.queue.iter().position(|q| q.task == task)?;
        machine.queue.remove(at)
    });
    if let Some((machine, queued)) = after.machines.get_mut(&thief).zip(queued) {
        machine.queue.push_back(queued);
    }
    is_survivable(&after, now)
}

fn work_from(tasks: &[SpotTask]) -> Vec<(Time, [WorkBounds; 2])> {
    let of = |b: &SpotTask| {
        let most = if b.slowest == UNABLE { 0 } else { u128::from(b.slowest.as_micros()) };
        let work = WorkBounds { most, least: u128::from(b.fastest.as_micros()) };
        let none = WorkBounds::default();
        (b.end, if b.waits { [work, none] } else { [none, work] })
    };
    let mut from: Vec<_> = tasks.iter().map(of).collect();
    from.sort_unstable_by_key(|&(end, _)| end);
    let mut sum = [WorkBounds::default(); 2];
    for (_, work) in from.iter_mut().rev() {
        sum = [sum[0] + work[0], sum[1] + work[1]];
        *work = sum;
    }
    from
}

/// The tasks by length, longest first.
fn by_length(view: &ClusterView, found: &[SpotTask]) -> Vec<SpotTask> {
    let mut of_task: Vec<Option<u32>> = vec![None; view.problem.task_count()];
    for (place, burden) in (0_u32..).zip(found) {
        if let Some(of_task) = of_task.get_mut(burden.task.get() as usize) {
            *of_task = Some(place);
        }
    }
    let place = |task: &TaskId| of_task.get(task.get() as usize).copied().flatten();
    let places = view.problem.by_length().iter().filter_map(place);
    places.map(|place| found[place as usize]).collect()
}

/// The tasks by remaining work, most first, given the tasks by length.
fn by_left(view: &ClusterView, tasks: &[SpotTask]) -> Vec<SpotTaskEnd> {
    let work_left = |b: &SpotTask| {
        let whole = view.problem.longest_time(b.task);
        if b.kept {
            whole.saturating_sub(whole.part(view.task_progress(b.task).done))
        } else {
            whole
        }
    };
    let all = (0_u32..).zip(tasks).map(|(place, b)| {
        let left = SpotTaskEnd { end: b.end, slowest: b.slowest, waits: b.waits, place };
        (b.kept, (Reverse(work_left(b)), b.task), left)
    });
    let (kept, mut by_left): (Vec<_>, Vec<_>) = all.partition(|(kept, ..)| *kept);
    // Most tasks are in order already, and the sort takes hardly any time for those.
    by_left.extend(kept);
    by_left.sort_by_key(|(_, key, _)| *key);
    by_left.into_iter().map(|(.., left)| left).collect()
}

/// An on-demand VM as it will be at the later time `at`.
fn site_later(view: &ClusterView, site: &PlacementSite, at: Time) -> PlacementSite {
    if is_gone(site, at) {
        return view.new_site(at, site.kind, Market::OnDemand, SiteClass::New);
    }
    let mut site = site.clone();
    site.packing.not_before(at);
    site
}

/// The regular on-demand VMs that could take tasks over: existing ones, and all that could be
/// launched.
fn takeover_sites(view: &ClusterView, now: Time) -> Vec<PlacementSite> {
    let mut sites = Vec::new();
    for (&vm, machine) in &view.machines {
        let regular =
            machine.market == Market::OnDemand && view.type_of_vm(machine).burstable.is_none();
        if regular && machine.takes_work() {
            let mut site = view.site_of_vm(now, vm, machine);
            // A VM that is there is not one to be launched, even if it has nothing to do yet.
            site.class = SiteClass::Busy;
            sites.push(site);
        }
    }
    for (id, _) in view.problem.regular_types(Market::OnDemand) {
        let new = || view.new_site(now, id, Market::OnDemand, SiteClass::New);
        let n = view.launchable_vms(id, Market::OnDemand).min(view.problem.task_count());
        sites.extend(std::iter::repeat_with(new).take(n));
    }
    sites
}

/// Recomputes the checks of a takeover by placing every task, without the bounds; tests compare both answers.
#[cfg(test)]
impl TakeoverForecast<'_> {
    fn compare_with_trials(
        &self,
        moments: &[Time],
        sites: &[PlacementSite],
        whose: TaskSelection,
        found: Option<usize>,
    ) {
        if self.tasks.len() <= 60 {
            let plainly = moments.iter().position(|&at| !self.fit_plainly(at, sites, whose));
            assert_eq!(found, plainly, "{whose:?} at {moments:?}");
        }
    }

    fn fit_plainly(&self, at: Time, sites: &[PlacementSite], whose: TaskSelection) -> bool {
        let left = self.tasks.iter().filter(|b| b.is_left(at, whose));
        let mut tasks: Vec<_> = left.map(|b| (b.task, b.start < at)).collect();
        super::sites::WAYS[1..].iter().any(|&way| {
            let mut sites: Vec<_> = sites.iter().map(|s| site_later(self.view, s, at)).collect();
            self.view.sort_affected(&mut tasks, way);
            tasks.iter().all(|&(task, _)| {
                let Some(choice) = self.view.choose_site(&sites, task, way) else { return false };
                self.view.settle_in(&mut sites, task, &choice);
                choice.slot.end <= self.view.latest_end(task)
            })
        })
    }
}
