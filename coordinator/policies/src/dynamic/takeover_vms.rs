//! The on-demand VMs that could take tasks over, and when their vCPUs are free.

use std::cmp::Reverse;

use dormouse_units::{Span, Time};

use super::cluster_view::ClusterView;
use super::sites::{PlacementSite, SiteClass};

/// On-demand VMs, existing or to be launched. The times from which their vCPUs are free lie side by
/// side, since they are read for many moments.
#[derive(Debug)]
pub(crate) struct TakeoverVms {
    pub(crate) sites: Vec<PlacementSite>,
    lanes: Vec<VmLanes>,
    /// Times from which vCPUs are free, VM by VM, latest first within a VM.
    free: Vec<Time>,
    /// Time that a VM takes to boot.
    boot: Span,
}

/// The vCPUs of one VM.
#[derive(Debug)]
struct VmLanes {
    /// Time from which the VM has no work left; zero for a VM that does not exist yet.
    done: Time,
    /// Index of the VM's first vCPU in [`TakeoverVms::free`].
    first: usize,
    vcpus: usize,
    /// Number of vCPUs that can be used whatever memory the tasks need.
    certain: usize,
}

/// Selection of the vCPUs of a VM that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedVcpus {
    All,
    /// As many vCPUs as can be used whatever memory the tasks need, chosen from the VM's vCPUs that are free latest.
    Certain,
}

impl TakeoverVms {
    pub(crate) fn new(view: &ClusterView, sites: Vec<PlacementSite>) -> Self {
        let most = view.problem.most_memory().get().max(1);
        let mut free = Vec::new();
        let mut lanes = Vec::with_capacity(sites.len());
        for site in &sites {
            let kind = &view.problem.kinds[site.kind];
            // This number of tasks always fits together, however large they are.
            let together = kind.memory_limit.map_or(kind.vcpus, |limit| {
                usize::try_from(limit.get() / most).unwrap_or(usize::MAX)
            });
            let first = free.len();
            free.extend(site.packing.free_from());
            free[first..].sort_unstable_by_key(|&free| Reverse(free));
            let is_there = site.class != SiteClass::New;
            let done = if is_there { site.packing.last_end() } else { Time::ZERO };
            lanes.push(VmLanes {
                done,
                first,
                vcpus: kind.vcpus,
                certain: together.min(kind.vcpus),
            });
        }
        Self { sites, lanes, free, boot: view.problem.takeover_boot }
    }

    /// Calls `see` for each time from which vCPUs are free, but not before `at`, with the number of these
    /// vCPUs. A VM without work at `at` may have been given back by then and has to boot again.
    pub(crate) fn free_at(
        &self,
        at: Time,
        counted: CountedVcpus,
        mut see: impl FnMut(Time, usize),
    ) {
        let mut gone = 0;
        for vm in &self.lanes {
            let n = if counted == CountedVcpus::Certain { vm.certain } else { vm.vcpus };
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

    /// Total free time of the vCPUs from `at` until `end`, in microseconds.
    pub(crate) fn free_time(&self, at: Time, end: Time) -> u128 {
        let mut room = 0;
        self.free_at(at, CountedVcpus::All, |free, n| {
            room += n as u128 * u128::from(end.since(free).as_micros());
        });
        room
    }
}
