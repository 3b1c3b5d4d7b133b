//! The VMs of the durable log that are on lying workers.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Step};
use dormouse_units::{HostId, VmId};

/// The workers that lie, with their hosts and VMs in the log.
#[derive(Debug, Default)]
pub(super) struct LyingHosts {
    liars: BTreeSet<String>,
    hosts: BTreeSet<HostId>,
    vms: BTreeSet<VmId>,
}

impl LyingHosts {
    /// A record of workers of these names, with no hosts yet.
    pub(super) fn new(liars: BTreeSet<String>) -> Self {
        Self { liars, ..Self::default() }
    }

    /// Forgets the content of the log, which begins again from nothing.
    pub(super) fn log_begins_anew(&mut self) {
        *self = Self::new(std::mem::take(&mut self.liars));
    }

    /// Takes in a durable step.
    pub(super) fn see(&mut self, step: &Step) {
        if let Event::HostJoined { host, name, .. } = &step.event {
            let worker = name.rsplit_once('@').map_or(name.as_str(), |(worker, _)| worker);
            if self.liars.contains(worker) {
                self.hosts.insert(*host);
            }
        }
        for effect in &step.effects {
            if let Effect::VmLaunched { vm, host, .. } = effect
                && self.hosts.contains(host)
            {
                self.vms.insert(*vm);
            }
        }
    }

    /// Whether a VM is on a worker that lies.
    pub(super) fn has(&self, vm: VmId) -> bool {
        self.vms.contains(&vm)
    }

    /// Whether the event of a step is a report from a lying worker.
    pub(super) fn says(&self, step: &Step) -> bool {
        matches!(&step.event, Event::Machine { host, .. } if self.hosts.contains(host))
    }
}
