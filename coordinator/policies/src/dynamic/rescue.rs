//! Trial placement of tasks on on-demand VMs, exactly as Algorithm 4 would do it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_cloud::Market;
use dormouse_units::{Bytes, Price, Span, TaskId, Time};

use super::floor::Floor;
use super::sites::{Class, Site};
use crate::packing::Packing;
use crate::problem::KindId;

/// The rule by which tasks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As in Algorithm 4's attempts: on VMs that are busy, then on new ones, by D.
    Attempts,
    /// Each task where it ends first.
    Soonest,
}

/// The VM that a task was placed on, and how long it takes there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) site: usize,
    pub(crate) task: TaskId,
    pub(crate) length: Span,
}

/// The length of a task where it can't run.
pub(crate) const UNABLE: Span = Span::from_micros(u64::MAX);

/// Key by which places are compared, the least is best: the rank of the VM among those that are tried
/// one after the other, the end of the task, whether the VM is new, and its index.
type Key = (u64, Time, bool, usize);

/// The VMs of one type.
struct OfKind {
    kind: KindId,
    /// Place of the type among those of which a task's lengths are given.
    column: usize,
    /// Rank of a new VM where busy ones are tried before, and have rank 0: the cheaper first.
    rank: u64,
    vcpus: usize,
    /// When a VM that is launched now will have booted.
    booted: Time,
    busy: Busy,
    /// Indices of the VMs to be launched, the first last.
    new: Vec<usize>,
}

/// The VMs of a type that have something to do.
enum Busy {
    /// The vCPUs of the VMs, the one that is free first on top, for a type on whose VMs any tasks
    /// fit together.
    Lanes(BinaryHeap<Reverse<(Time, usize)>>),
    /// The VMs with their packings, for a type where memory can keep a vCPU idle.
    Packed(Vec<(usize, Packing)>, Option<Bytes>),
}

impl Busy {
    /// The earliest start of a task and the index of its VM.
    fn first(&self, length: Span, memory: Bytes) -> Option<(Time, usize)> {
        match self {
            Self::Lanes(lanes) => lanes.peek().map(|first| first.0),
            Self::Packed(vms, _) => {
                vms.iter().map(|(site, vm)| (vm.peek(length, memory).start, *site)).min()
            }
        }
    }

    fn put(&mut self, site: usize, length: Span, memory: Bytes) {
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

    fn open(&mut self, site: usize, vcpus: usize, booted: Time, length: Span, memory: Bytes) {
        match self {
            Self::Lanes(lanes) => {
                lanes.push(Reverse((booted + length, site)));
                lanes.extend((1..vcpus).map(|_| Reverse((booted, site))));
            }
            Self::Packed(vms, limit) => {
                let mut vm = Packing::new(vcpus, booted, *limit);
                vm.push(length, memory);
                vms.push((site, vm));
            }
        }
    }
}

/// Whether a VM has nothing left to do at `at`: it may have been given back by then and has to boot
/// again.
pub(crate) fn is_gone(site: &Site, at: Time) -> bool {
    site.class == Class::New || site.packing.last_end() <= at
}

/// Rank of a new VM of this price.
fn rank(price: Option<Price>) -> u64 {
    price.map_or(1, |price| price.as_nanos_per_hour().saturating_add(2))
}

/// On-demand VMs that fill up.
pub(crate) struct Rescue<'a> {
    floor: &'a Floor,
    kinds: Vec<OfKind>,
}

impl<'a> Rescue<'a> {
    /// The VMs in `sites`, which are of these types, as they are at `at`.
    pub(crate) fn new(floor: &'a Floor, types: &[KindId], sites: &[Site], at: Time) -> Self {
        let mut kinds: Vec<OfKind> = Vec::with_capacity(types.len());
        let mut lanes: Vec<Vec<Reverse<(Time, usize)>>> = Vec::with_capacity(types.len());
        for (index, site) in sites.iter().enumerate() {
            let offer = &floor.problem.kinds[site.kind];
            let place = kinds.iter().position(|k| k.kind == site.kind).unwrap_or_else(|| {
                let busy = match offer.memory_limit {
                    None => Busy::Lanes(BinaryHeap::new()),
                    limit => Busy::Packed(Vec::new(), limit),
                };
                let column = types.iter().position(|kind| *kind == site.kind);
                kinds.push(OfKind {
                    kind: site.kind,
                    column: column.unwrap_or(usize::MAX),
                    rank: rank(offer.price(Market::OnDemand)),
                    vcpus: offer.vcpus,
                    booted: at + floor.problem.takeover_boot,
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
                Busy::Lanes(_) => {
                    let free = site.packing.free_from().map(|free| Reverse((free.max(at), index)));
                    lanes[place].extend(free);
                }
                Busy::Packed(vms, _) => {
                    let mut vm = site.packing.clone();
                    vm.not_before(at);
                    vms.push((index, vm));
                }
            }
        }
        for (of, lanes) in kinds.iter_mut().zip(lanes) {
            of.new.reverse();
            if let Busy::Lanes(busy) = &mut of.busy {
                *busy = lanes.into();
            }
        }
        Self { floor, kinds }
    }

    /// Places a task that takes this long on each of the types, or [`UNABLE`]. `None` if it can't be
    /// done by D.
    pub(crate) fn place(&mut self, task: TaskId, lengths: &[Span], order: Order) -> Option<Placed> {
        let memory = self.floor.problem.memory(task);
        let limit = self.floor.limit(task);
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
                    Order::Attempts => (if new { of.rank } else { 0 }, end, new, site),
                    Order::Soonest => (0, end, new, site),
                };
                if best.is_none_or(|(least, ..)| key < least) {
                    best = Some((key, place, length, new));
                }
            };
            if let Some((start, site)) = of.busy.first(length, memory) {
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
            of.busy.open(site, of.vcpus, of.booted, length, memory);
        } else {
            of.busy.put(site, length, memory);
        }
        Some(Placed { site, task, length })
    }
}
