//! The places a task could go to, in the order of Algorithm 4's four attempts.

use std::cmp::Reverse;

use dormouse_cloud::Market;
use dormouse_units::{Credits, Ppm, Span, TaskId, Time, VmId};

use super::cluster_view::ClusterView;
use super::scheduled_vm::{ScheduledVm, VmPhase, credits_needed};
use crate::packing::{TaskSlot, VcpuPacking};
use crate::problem::KindId;
use crate::{BurstOn, SpareTime};
use dormouse_units::Mode;

/// Classes of VMs on which a task could be placed, in the order in which Algorithm 4 tries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiteClass {
    /// Attempt 1 of Algorithm 4: a burstable VM that [`BurstOn`] allows.
    Burstable,
    /// Attempt 2 of Algorithm 4: an idle VM that is not burstable.
    Idle,
    /// Attempt 3 of Algorithm 4: a busy VM that is not burstable.
    Busy,
    /// Attempt 4 of Algorithm 4: a regular on-demand VM that is not launched yet.
    New,
    /// None of the four attempts of Algorithm 4: a busy burstable VM, or a spot or burstable VM that is not launched
    /// yet.
    Other,
}

/// Selects which attempts of Algorithm 4 are made to place a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacementAttempts {
    /// True if burstable VMs are tried (attempt 1), with their credits.
    pub(crate) burst: bool,
    /// True if spot VMs are tried, too.
    pub(crate) spot: bool,
    /// True if, instead of the four attempts, the task goes to the regular on-demand VM on which it ends first.
    pub(crate) soonest: bool,
    /// For a task that becomes ready to start during the run: the market in which a VM is launched for the task, between attempts 3
    /// and 4. If no spot VMs are allowed, only the on-demand market.
    pub(crate) arrival: Option<Market>,
}

/// Ways to place migrated tasks, in the order in which they are tried.
pub(crate) const WAYS: [PlacementAttempts; 3] = [
    PlacementAttempts { burst: false, spot: true, soonest: false, arrival: None },
    PlacementAttempts { burst: false, spot: false, soonest: false, arrival: None },
    PlacementAttempts { burst: false, spot: false, soonest: true, arrival: None },
];

impl PlacementAttempts {
    /// The attempts of Algorithm 4 that place a task which becomes ready to start during the run, with VMs launched
    /// in this market.
    pub(crate) fn of_arrival(market: Market) -> Self {
        let spot = market == Market::Spot;
        Self { burst: false, spot, soonest: false, arrival: Some(market) }
    }
}

/// A VM that exists or could be launched, and the future use of its vCPUs.
#[derive(Clone, Debug)]
pub(crate) struct PlacementSite {
    pub(crate) vm: Option<VmId>,
    pub(crate) kind: KindId,
    pub(crate) market: Market,
    pub(crate) class: SiteClass,
    pub(crate) packing: VcpuPacking,
    /// Longest time that a task running or queued on the VM may take on any type; 0 without tasks.
    pub(crate) longest: Span,
    pub(crate) credits: Credits,
    /// Number of vCPUs that no task runs on or waits for.
    pub(crate) free: usize,
    /// Number of further identical VMs that could be launched: each is as good a site as this one.
    pub(crate) more: usize,
}

/// The site that was chosen for a task, and how the task runs on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChosenSite {
    pub(crate) site: usize,
    pub(crate) mode: Mode,
    pub(crate) slot: TaskSlot,
    pub(crate) length: Span,
}

impl ClusterView {
    /// Returns a site for every VM that accepts tasks and every VM that could be launched; identical VMs share one
    /// site.
    pub(crate) fn all_sites(&self, now: Time) -> Vec<PlacementSite> {
        let there = self.machines.iter().filter(|(_, m)| m.takes_work());
        let mut sites: Vec<PlacementSite> =
            there.map(|(&vm, m)| self.site_of_vm(now, vm, m)).collect();
        for (id, kind) in self.problem.kinds.iter().enumerate() {
            for market in [Market::OnDemand, Market::Spot] {
                let regular = market == Market::OnDemand && kind.burstable.is_none();
                let class = if regular { SiteClass::New } else { SiteClass::Other };
                let n = self.launchable_vms(id, market).min(self.problem.task_count());
                let Some(more) = n.checked_sub(1) else { continue };
                sites.push(PlacementSite { more, ..self.new_site(now, id, market, class) });
            }
        }
        sites
    }

    /// The site of an existing VM.
    pub(crate) fn site_of_vm(&self, now: Time, vm: VmId, machine: &ScheduledVm) -> PlacementSite {
        let kind = self.type_of_vm(machine);
        let taken = machine.running.len() + machine.leaving.len() + machine.queue.len();
        let free = kind.vcpus.saturating_sub(taken);
        let class = match (machine.is_idle(), kind.burstable.is_some()) {
            (true, true) => SiteClass::Burstable,
            (true, false) => SiteClass::Idle,
            (false, false) => SiteClass::Busy,
            (false, true) => match self.burst_on {
                BurstOn::FreeVcpu if machine.phase == VmPhase::Ready && free > 0 => {
                    SiteClass::Burstable
                }
                _ => SiteClass::Other,
            },
        };
        PlacementSite {
            vm: Some(vm),
            kind: machine.kind,
            market: machine.market,
            class,
            packing: self.expected_packing(now, machine),
            longest: machine
                .all_tasks()
                .map(|t| self.problem.longest_time(t))
                .max()
                .unwrap_or(Span::ZERO),
            credits: self.free_credits(now, machine),
            free,
            more: 0,
        }
    }

    /// Class of a burstable VM with `free` free vCPUs for the remaining tasks of a migration, once one of the tasks was
    /// placed on the VM.
    fn burstable_with(&self, free: usize) -> SiteClass {
        match self.burst_on {
            BurstOn::FreeVcpu | BurstOn::IdleVcpus if free > 0 => SiteClass::Burstable,
            _ => SiteClass::Other,
        }
    }

    /// The site of a VM that would be launched at `at`.
    pub(crate) fn new_site(
        &self,
        at: Time,
        id: KindId,
        market: Market,
        class: SiteClass,
    ) -> PlacementSite {
        let kind = &self.problem.kinds[id];
        PlacementSite {
            vm: None,
            kind: id,
            market,
            class,
            packing: VcpuPacking::new(
                kind.vcpus,
                at + self.problem.takeover_boot,
                kind.memory_limit,
            ),
            longest: Span::ZERO,
            credits: kind.burstable.map_or(Credits::ZERO, |b| b.initial),
            free: kind.vcpus,
            more: 0,
        }
    }

    /// The slot and length of a task at a site, if the task can run there in time (`check_migration` of the paper).
    fn in_time(&self, site: &PlacementSite, task: TaskId, mode: Mode) -> Option<(TaskSlot, Span)> {
        let (slot, length) = self.at_all(site, task, mode)?;
        self.is_safe(site, task, slot).then_some((slot, length))
    }

    /// True if a task in this slot ends by the deadline D, or early enough for its successors. On a spot VM the task must also
    /// leave time to redo the work that another hibernation would affect: more than a boot and the longest task. (The paper asks
    /// for the longest task only; a migration that has to launch a VM would then be late.)
    pub(crate) fn is_safe(&self, site: &PlacementSite, task: TaskId, slot: TaskSlot) -> bool {
        let longest = site.longest.max(self.problem.longest_time(task));
        match site.market {
            Market::OnDemand => slot.end <= self.latest_end(task),
            Market::Spot => {
                let end = slot.end.max(site.packing.last_end());
                let is_kept =
                    self.latest_end(task).since(end) > longest + self.problem.takeover_boot;
                match self.spare_time {
                    SpareTime::Kept => is_kept,
                    SpareTime::Reversed => !is_kept && end <= self.latest_end(task),
                }
            }
        }
    }

    /// The slot and length of a task at a site, even if the task ends too late there.
    pub(crate) fn at_all(
        &self,
        site: &PlacementSite,
        task: TaskId,
        mode: Mode,
    ) -> Option<(TaskSlot, Span)> {
        let length = self.remaining_time(task, (site.kind, site.market), mode)?;
        Some((site.packing.peek(length, self.problem.task_memory(task)), length))
    }

    /// Chooses a place for a task by Algorithm 4. Within an attempt, spot VMs come before on-demand
    /// ones (attempts 2 and 3) or the cheaper first (attempt 4), then the place where the task ends
    /// first [choice].
    ///
    /// If the task ends in time nowhere, it goes where it ends first: a late task is still a
    /// result.
    pub(crate) fn choose_site(
        &self,
        sites: &[PlacementSite],
        task: TaskId,
        PlacementAttempts { burst, spot, soonest, arrival }: PlacementAttempts,
    ) -> Option<ChosenSite> {
        let choice =
            |site, mode, (slot, length): (TaskSlot, Span)| ChosenSite { site, mode, slot, length };
        let is_regular = |s: &PlacementSite| self.problem.kinds[s.kind].burstable.is_none();
        let attempt = |class: SiteClass| {
            let open = |s: &PlacementSite| {
                let is_new_spot = || s.vm.is_none() && s.market == Market::Spot && is_regular(s);
                s.class == class
                    && (spot || s.market == Market::OnDemand)
                    && (class != SiteClass::Other || is_new_spot())
            };
            let of_class = sites.iter().enumerate().filter(|(_, s)| open(s));
            let able = of_class.filter_map(|(i, site)| {
                let (slot, length) = self.in_time(site, task, Mode::Burst)?;
                let enough = class != SiteClass::Burstable || site.credits > credits_needed(length);
                let price = self.problem.kinds[site.kind].price(site.market);
                let key = match class {
                    SiteClass::New | SiteClass::Other => (0, price, slot.end),
                    _ => (u8::from(site.market == Market::OnDemand), None, slot.end),
                };
                enough.then_some((key, choice(i, Mode::Burst, (slot, length))))
            });
            able.min_by_key(|(key, c)| (*key, c.site)).map(|(_, c)| c)
        };
        let attempts: &[SiteClass] = match (arrival, soonest, burst) {
            (Some(_), ..) => &[SiteClass::Idle, SiteClass::Busy, SiteClass::Other, SiteClass::New],
            (None, true, _) => &[],
            (None, false, true) => {
                &[SiteClass::Burstable, SiteClass::Idle, SiteClass::Busy, SiteClass::New]
            }
            (None, false, false) => &[SiteClass::Idle, SiteClass::Busy, SiteClass::New],
        };
        let on_demand_only = soonest || arrival == Some(Market::OnDemand);
        attempts.iter().find_map(|&class| attempt(class)).or_else(|| {
            // Any VM will do, unless on-demand ones are asked for: a late task is still a result.
            let open = |s: &PlacementSite| {
                !on_demand_only || (is_regular(s) && s.market == Market::OnDemand)
            };
            let open = sites.iter().enumerate().filter(|(_, s)| open(s));
            let any = open.filter_map(|(i, site)| {
                let burstable = self.problem.kinds[site.kind].burstable.is_some();
                let (slot, length) = self.at_all(site, task, Mode::Burst)?;
                if !burstable || site.credits > credits_needed(length) {
                    return Some(choice(i, Mode::Burst, (slot, length)));
                }
                Some(choice(i, Mode::Baseline, self.at_all(site, task, Mode::Baseline)?))
            });
            any.min_by_key(|c| (c.slot.end, sites[c.site].class, c.site))
        })
    }

    /// Records that a task goes to its chosen site, so that later choices see the task there. Of identical VMs the
    /// first one gets the task.
    pub(crate) fn settle_in(
        &self,
        sites: &mut Vec<PlacementSite>,
        task: TaskId,
        choice: &ChosenSite,
    ) {
        let Some(site) = sites.get_mut(choice.site) else { return };
        if let Some(more) = std::mem::take(&mut site.more).checked_sub(1) {
            let next = PlacementSite { more, ..site.clone() };
            sites.insert(choice.site + 1, next);
        }
        let Some(site) = sites.get_mut(choice.site) else { return };
        site.packing.push(choice.length, self.problem.task_memory(task));
        site.longest = site.longest.max(self.problem.longest_time(task));
        if choice.mode == Mode::Burst {
            site.credits = site.credits.saturating_sub(credits_needed(choice.length));
        }
        site.free = site.free.saturating_sub(1);
        site.class = match (self.problem.kinds[site.kind].burstable, site.class) {
            (None, _) => SiteClass::Busy,
            (Some(_), SiteClass::Burstable) => self.burstable_with(site.free),
            (Some(_), _) => SiteClass::Other,
        };
    }

    /// Sorts the affected tasks as Algorithm 4 does: first those that ran and have a checkpoint, then the longest first
    /// [choice]. With `soonest`: the tasks with most work left first, as shorter ones fit in later.
    pub(crate) fn sort_affected(&self, tasks: &mut [(TaskId, bool)], way: PlacementAttempts) {
        tasks.sort_by_key(|&(task, ran)| {
            let done = self.task_progress(task).done;
            let whole = self.problem.longest_time(task);
            let kept = !way.soonest && ran && done > Ppm::ZERO;
            let left = if way.soonest { whole.saturating_sub(whole.part(done)) } else { whole };
            (!kept, Reverse(left), task)
        });
    }
}
