//! The VMs of the service.

use std::collections::BTreeMap;

use dormouse_cloud::Lifetimes;
use dormouse_cloud::lifetimes::hours;
use dormouse_units::{Span, Time, VmId};

use super::ReusePolicy;

/// One VM of the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterVm {
    /// Time since when the VM can be used; `None`: it boots.
    pub(super) ready: Option<Time>,
    /// Index of the job that has the VM; `None`: it is free.
    pub(super) job: Option<usize>,
    /// Time since when no job has the VM.
    pub(super) idle: Time,
    /// True if a job has run on the VM.
    pub(super) used: bool,
    /// True if the VM will be preempted soon.
    pub(super) leaves: bool,
}

impl ClusterVm {
    /// Time for which the VM has been usable.
    pub(super) fn age_of_vm(&self, now: Time) -> Span {
        self.ready.map_or(Span::ZERO, |ready| now.since(ready))
    }

    /// True if a job can have the VM.
    pub(super) const fn is_free(&self) -> bool {
        self.job.is_none() && !self.leaves
    }
}

/// All VMs that were launched and not given back, with the policy by which they are chosen.
#[derive(Debug)]
pub(super) struct ServiceCluster {
    pub(super) vms: BTreeMap<VmId, ClusterVm>,
    next: VmId,
    /// Greatest number of VMs at a time.
    most: usize,
    policy: ReusePolicy,
    /// Lifetime law of the VMs; `None`: the provider never preempts them.
    law: Option<Lifetimes>,
}

impl ServiceCluster {
    pub(super) const fn new(most: usize, policy: ReusePolicy, law: Option<Lifetimes>) -> Self {
        Self { vms: BTreeMap::new(), next: VmId::new(0), most, policy, law }
    }

    /// Number of VMs that can be launched.
    pub(super) fn launchable_vms(&self) -> usize {
        self.most.saturating_sub(self.vms.len())
    }

    /// Adds a new VM for job number `job`; returns the VM's id.
    pub(super) fn add(&mut self, now: Time, job: usize) -> VmId {
        let id = self.next;
        self.next = id.next();
        let vm = ClusterVm { ready: None, job: Some(job), idle: now, used: false, leaves: false };
        self.vms.insert(id, vm);
        id
    }

    /// Value of a VM for a job of this expected length, in hours or as a probability depending on the policy; less is
    /// better. `None`: a new VM is better.
    fn value_of_vm(&self, now: Time, vm: &ClusterVm, job: Option<Span>) -> Option<f64> {
        if !vm.used && vm.ready.is_none() {
            return Some(0.0);
        }
        if self.policy == ReusePolicy::Never {
            return (!vm.used).then_some(0.0);
        }
        let (Some(law), Some(job)) = (&self.law, job) else { return Some(0.0) };
        let reuse = self.policy.compare(law.law(), hours(vm.age_of_vm(now)), hours(job));
        reuse.reuse().then_some(reuse.here)
    }

    /// The free VMs that are at least as good as a new one, the best first, and the other free VMs.
    pub(super) fn free_vms(&self, now: Time, job: Option<Span>) -> (Vec<VmId>, Vec<VmId>) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (&id, vm) in self.vms.iter().filter(|(_, vm)| vm.is_free()) {
            match self.value_of_vm(now, vm, job) {
                Some(worth) => good.push((vm.ready.is_none(), worth, id)),
                None => bad.push(id),
            }
        }
        good.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        (good.into_iter().map(|(.., id)| id).collect(), bad)
    }
}
