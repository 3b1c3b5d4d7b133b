//! Trial placement of tasks on on-demand VMs, exactly as Algorithm 4 would do it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_cloud::Market;
use dormouse_units::{Bytes, Price, Span, TaskId, Time};

use super::cluster_view::ClusterView;
use super::sites::{PlacementSite, SiteClass};
use crate::packing::VcpuPacking;
use crate::problem::KindId;

/// The rule by which tasks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacementOrder {
    /// Tasks are placed as in Algorithm 4: on busy VMs first, then on new ones, where they end by D.
    Attempts,
    /// Each task goes to the VM on which it ends first.
    Soonest,
}

/// Result of placing one task: the VM's index, and the task's length there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialPlacement {
    pub(crate) site: usize,
    pub(crate) task: TaskId,
    pub(crate) length: Span,
}

/// Time of a task that stands for "can't run on this type".
pub(crate) const UNABLE: Span = Span::from_micros(u64::MAX);

/// Sort key of places, least first: rank of the VM among those tried in turn, end of the task, true
/// for a new VM, and the VM's index.
type Key = (u64, Time, bool, usize);

/// The VMs of one type in a trial placement.
struct TrialVms {
    kind: KindId,
    /// Index of the type among the types for which a task's lengths are given.
    column: usize,
    /// Rank of a new VM of the type if busy VMs, of rank 0, are tried first: the cheaper, the lower.
    rank: u64,
    vcpus: usize,
    /// When a VM that is launched now will have booted.
    booted: Time,
    busy: BusyVms,
    /// Indices of the VMs still to be launched, as a stack.
    new: Vec<usize>,
}

/// The VMs of a type that have tasks.
enum BusyVms {
    /// For a type on whose VMs memory never binds: the time from which each vCPU is free, with its VM's
    /// index, earliest first.
    Lanes(BinaryHeap<Reverse<(Time, usize)>>),
    /// For a type where memory can keep a vCPU idle: the index and packing of each VM, and the memory of a
    /// VM.
    Packed(Vec<(usize, VcpuPacking)>, Option<Bytes>),
}

impl BusyVms {
    /// The earliest start of a task on these VMs and the index of its VM; `None`: no VM has tasks yet.
    fn earliest_start(&self, length: Span, memory: Bytes) -> Option<(Time, usize)> {
        match self {
            Self::Lanes(lanes) => lanes.peek().map(|first| first.0),
            Self::Packed(vms, _) => {
                vms.iter().map(|(site, vm)| (vm.peek(length, memory).start, *site)).min()
            }
        }
    }

    fn put_task(&mut self, site: usize, length: Span, memory: Bytes) {
        match self {
            Self::Lanes(lanes) => {
                if let Some(mut first) = lanes.peek_mut() {
                    first.0.0 += length;
                }
            }
            Self::Packed(vms, _) => {
                if let Some((_, vm)) = vms.iter_mut().find(|(at, _)| *at == site) {
                    vm.push(length, memory);
                }
            }
        }
    }

    fn open_vm(&mut self, site: usize, vcpus: usize, booted: Time, length: Span, memory: Bytes) {
        match self {
            Self::Lanes(lanes) => {
                lanes.push(Reverse((booted + length, site)));
                lanes.extend((1..vcpus).map(|_| Reverse((booted, site))));
            }
            Self::Packed(vms, limit) => {
                let mut vm = VcpuPacking::new(vcpus, booted, *limit);
                vm.push(length, memory);
                vms.push((site, vm));
            }
        }
    }
}

/// True if a VM has no work left at `at`: by then the scheduler may have terminated it, and a new one would have to
/// boot.
pub(crate) fn is_gone(site: &PlacementSite, at: Time) -> bool {
    site.class == SiteClass::New || site.packing.last_end() <= at
}

/// Rank of a new VM of this price among the VMs that are tried: the cheaper, the lower.
fn rank_of_price(price: Option<Price>) -> u64 {
    price.map_or(1, |price| price.as_nanos_per_hour().saturating_add(2))
}

/// On-demand VMs to which a trial assigns tasks one after the other.
pub(crate) struct TrialFleet<'a> {
    view: &'a ClusterView,
    kinds: Vec<TrialVms>,
}

impl<'a> TrialFleet<'a> {
    /// A trial on those of the VMs in `sites` that have these types, in their state at `at`.
    pub(crate) fn new(
        view: &'a ClusterView,
        types: &[KindId],
        sites: &[PlacementSite],
        at: Time,
    ) -> Self {
        let mut kinds: Vec<TrialVms> = Vec::with_capacity(types.len());
        let mut lanes: Vec<Vec<Reverse<(Time, usize)>>> = Vec::with_capacity(types.len());
        for (index, site) in sites.iter().enumerate() {
            let offer = &view.problem.kinds[site.kind];
            let place = kinds.iter().position(|k| k.kind == site.kind).unwrap_or_else(|| {
                let busy = match offer.memory_limit {
                    None => BusyVms::Lanes(BinaryHeap::new()),
                    limit => BusyVms::Packed(Vec::new(), limit),
                };
                let column = types.iter().position(|kind| *kind == site.kind);
                kinds.push(TrialVms {
                    kind: site.kind,
                    column: column.unwrap_or(usize::MAX),
                    rank: rank_of_price(offer.price(Market::OnDemand)),
                    vcpus: offer.vcpus,
                    booted: at + view.problem.takeover_boot,
                    busy,
                    new: Vec::new(),
                });
                lanes.push(Vec::new());
                kinds.len() - 1
            });
            let of = &mut kinds[place];
            if is_gone(site, at) {
                of.new.push(index);
                continue;
            }
            match &mut of.busy {
                BusyVms::Lanes(_) => {
                    let free = site.packing.free_from().map(|free| Reverse((free.max(at), index)));
                    lanes[place].extend(free);
                }
                BusyVms::Packed(vms, _) => {
                    let mut vm = site.packing.clone();
                    vm.not_before(at);
                    vms.push((index, vm));
                }
            }
        }
        for (of, lanes) in kinds.iter_mut().zip(lanes) {
            of.new.reverse();
            if let BusyVms::Lanes(busy) = &mut of.busy {
                *busy = lanes.into();
            }
        }
        Self { view, kinds }
    }

    /// Places a task whose time on each of the types is given in `lengths`, [`UNABLE`] where the task can't
    /// run. `None` if no VM can finish the task by D or early enough for its successors.
    pub(crate) fn place_task(
        &mut self,
        task: TaskId,
        lengths: &[Span],
        order: PlacementOrder,
    ) -> Option<TrialPlacement> {
        let memory = self.view.problem.task_memory(task);
        let limit = self.view.latest_end(task);
        let mut best: Option<(Key, usize, Span, bool)> = None;
        for (place, of) in self.kinds.iter().enumerate() {
            let Some(&length) = lengths.get(of.column).filter(|length| **length != UNABLE) else {
                continue;
            };
            let mut compare = |start: Time, site: usize, new: bool| {
                let end = start + length;
                if end > limit {
                    return;
                }
                let key = match order {
                    PlacementOrder::Attempts => (if new { of.rank } else { 0 }, end, new, site),
                    PlacementOrder::Soonest => (0, end, new, site),
                };
                if best.is_none_or(|(least, ..)| key < least) {
                    best = Some((key, place, length, new));
                }
            };
            if let Some((start, site)) = of.busy.earliest_start(length, memory) {
                compare(start, site, false);
            }
            if let Some(&site) = of.new.last() {
                compare(of.booted, site, true);
            }
        }
        let ((.., site), place, length, new) = best?;
        let of = self.kinds.get_mut(place)?;
        if new {
            of.new.pop();
            of.busy.open_vm(site, of.vcpus, of.booted, length, memory);
        } else {
            of.busy.put_task(site, length, memory);
        }
        Some(TrialPlacement { site, task, length })
    }
}
