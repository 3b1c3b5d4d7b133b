//! The on-demand VMs that could take tasks over, and when their vCPUs are free.

use std::cmp::Reverse;

use dormouse_units::{Span, Time};

use super::floor::Floor;
use super::sites::{Class, Site};

/// On-demand VMs, there or to be launched, with the times from which their vCPUs are free side by side:
/// they are asked for at many moments.
#[derive(Debug)]
pub(crate) struct Rescuers {
    pub(crate) sites: Vec<Site>,
    lanes: Vec<Lanes>,
    /// Times from which the vCPUs are free: those of a VM together, the last first.
    free: Vec<Time>,
    /// Time that a VM takes to boot.
    boot: Span,
}

/// The vCPUs of one VM.
#[derive(Debug)]
struct Lanes {
    /// Instant from which the VM has nothing left to do; the beginning for one that is not there yet.
    done: Time,
    /// Place of the first vCPU in [`Rescuers::free`].
    first: usize,
    vcpus: usize,
    /// Number of vCPUs that can be used whatever memory the tasks need.
    certain: usize,
}

/// Selection of the vCPUs of a VM that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    All,
    /// As many as can be used whatever memory the tasks need, and those that are free last.
    Certain,
}

impl Rescuers {
    pub(crate) fn new(floor: &Floor, sites: Vec<Site>) -> Self {
        let most = floor.problem.most_memory().get().max(1);
        let mut free = Vec::new();
        let mut lanes = Vec::with_capacity(sites.len());
        for site in &sites {
            let kind = &floor.problem.kinds[site.kind];
            // This number of tasks always fits together, however large they are.
            let together = kind.memory_limit.map_or(kind.vcpus, |limit| {
                usize::try_from(limit.get() / most).unwrap_or(usize::MAX)
            });
            let first = free.len();
            free.extend(site.packing.free_from());
            free[first..].sort_unstable_by_key(|&free| Reverse(free));
            let is_there = site.class != Class::New;
            let done = if is_there { site.packing.last_end() } else { Time::ZERO };
            lanes.push(Lanes { done, first, vcpus: kind.vcpus, certain: together.min(kind.vcpus) });
        }
        Self { sites, lanes, free, boot: floor.problem.takeover_boot }
    }

    /// Shows the times from which vCPUs are free, as they are at `at`, each with the number of vCPUs. A
    /// VM that has nothing to do then may have been given back and has to boot again.
    pub(crate) fn free_at(&self, at: Time, counted: Counted, mut see: impl FnMut(Time, usize)) {
        let mut gone = 0;
        for vm in &self.lanes {
            let n = if counted == Counted::Certain { vm.certain } else { vm.vcpus };
            if vm.done <= at {
                gone += n;
            } else {
                self.free[vm.first..][..n].iter().for_each(|&free| see(free.max(at), 1));
            }
        }
        if gone > 0 {
            see(at + self.boot, gone);
        }
    }

    /// The time until `end` of the vCPUs, as they are at `at`, in microseconds.
    pub(crate) fn room(&self, at: Time, end: Time) -> u128 {
        let mut room = 0;
        self.free_at(at, Counted::All, |free, n| {
            room += n as u128 * u128::from(end.since(free).as_micros());
        });
        room
    }
}
