//! The VMs of the durable log that are on lying workers, and a check that no other worker is disbelieved or leaves a command
//! unanswered.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Step};
use dormouse_units::{HostId, VmId};

use super::Broken;
use crate::invariant::Invariant;

/// What a coordinator says of a worker that it gives up because a command has no answer.
const UNANSWERED: &str = "has not answered for";

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

    /// Takes in a durable step, and checks that no worker is disbelieved that tells the truth, or given up for a command that it leaves
    /// unanswered.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                let worker = name.rsplit_once('@').map_or(name.as_str(), |(worker, _)| worker);
                if self.liars.contains(worker) {
                    self.hosts.insert(*host);
                }
            }
            Event::Disbelieved { host, why } if !self.hosts.contains(host) => {
                let why = format!("step {}: {host} is disbelieved: {why}", step.seq);
                return Err((Invariant::Believed, why));
            }
            Event::HostLost { host, why, .. }
                if why.contains(UNANSWERED) && !self.hosts.contains(host) =>
            {
                return Err((Invariant::Believed, format!("step {}: {host}: {why}", step.seq)));
            }
            _ => {}
        }
        for effect in &step.effects {
            if let Effect::VmLaunched { vm, host, .. } = effect
                && self.hosts.contains(host)
            {
                self.vms.insert(*vm);
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use dormouse_cloud::ResourceVector;

    use super::*;

    fn step(event: Event) -> Step {
        Step { event, ..Step::blank() }
    }

    #[test]
    fn only_who_lies_may_be_disbelieved() {
        let mut all = LyingHosts::new(["liar".to_owned()].into());
        for (host, name) in [(1, "liar@1"), (2, "honest@1")] {
            let (host, name) = (HostId::new(host), name.to_owned());
            let joined = Event::HostJoined { host, name, offer: ResourceVector::of_vcpus(1) };
            assert_eq!(all.see(&step(joined)), Ok(()));
        }
        let mut is_broken = |host| {
            let (host, why) = (HostId::new(host), "it reports what is not stored".to_owned());
            all.see(&step(Event::Disbelieved { host, why })).is_err()
        };
        assert!(!is_broken(1));
        assert!(is_broken(2));
        let mut is_wrongly_lost = |why: &str| {
            let (host, why) = (HostId::new(2), why.to_owned());
            all.see(&step(Event::HostLost { host, why, unheard: false })).is_err()
        };
        assert!(is_wrongly_lost("it was told to make vm1 and has not answered for 60 s"));
        assert!(!is_wrongly_lost("nothing was heard of it for 20 s"));
    }
}
