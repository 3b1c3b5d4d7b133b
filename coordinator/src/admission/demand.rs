//! The VMs that a scheduler may want at once, and whether the hosts have room for them.

use std::collections::BTreeSet;

use dormouse_cloud::{HostFleet, Market, PlacementRequest, ResourceVector};
use dormouse_model::Setup;
use dormouse_units::{Bytes, HostId, RandomStream, Time, TypeName, VmId};

/// VMs and hosts that a scheduler may want at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunDemand {
    /// vCPUs of each VM that may run at once, in the order of their launches.
    pub vms: Vec<u32>,
    /// Types that may be launched; some host must have room for a VM of each type.
    pub kinds: BTreeSet<TypeName>,
    /// Room that each host offers, in the order of their arrival, if the experiment specifies the provider's hosts;
    /// empty: each offers all it has. A host beyond this list offers nothing.
    pub hosts: Vec<ResourceVector>,
    /// True if VMs may fill the memory of their types, as instances do, so that hosts offer no more than they have.
    pub fills_memory: bool,
}

impl RunDemand {
    /// Returns the largest number of vCPUs that may be busy at once.
    #[must_use]
    pub fn busy_vcpus(&self) -> u32 {
        self.vms.iter().fold(0, |sum, vcpus| sum.saturating_add(*vcpus))
    }

    /// Makes the demand of a provider with these hosts, each offered whole with all its vCPUs busy.
    #[must_use]
    pub fn of_hosts(hosts: &[ResourceVector], kinds: BTreeSet<TypeName>) -> Self {
        let vms = hosts.iter().map(|host| host.vcpus).collect();
        Self { vms, kinds, hosts: hosts.to_vec(), fills_memory: false }
    }

    /// Returns the room that the n-th host offers to VMs, if it has the room `holds` in total, and this memory.
    pub(super) fn offer_nth(
        &self,
        n: usize,
        holds: ResourceVector,
        memory: Bytes,
    ) -> ResourceVector {
        let holds = if self.fills_memory { ResourceVector { memory, ..holds } } else { holds };
        match self.hosts.get(n) {
            Some(said) => ResourceVector {
                vcpus: holds.vcpus.min(said.vcpus),
                memory: holds.memory.min(said.memory),
                disk: holds.disk.min(said.disk),
                filled: holds.filled,
            },
            None if self.hosts.is_empty() => holds,
            None => ResourceVector { vcpus: 0, ..holds },
        }
    }

    /// Returns the index of the first host of the experiment whose place none of the present hosts `there` takes.
    pub(crate) fn first_vacant<'a>(
        &self,
        there: impl Iterator<Item = &'a ResourceVector>,
    ) -> usize {
        let mut left: Vec<(usize, &ResourceVector)> = self.hosts.iter().enumerate().collect();
        for host in there {
            // What is there offers just what is said of one, so that a larger one is not taken for it.
            let is_it = |said: &ResourceVector| {
                (said.vcpus, said.memory, said.disk) == (host.vcpus, host.memory, host.disk)
            };
            if let Some(n) = left.iter().position(|(_, said)| is_it(said)) {
                left.remove(n);
            }
        }
        left.first().map_or(self.hosts.len(), |(n, _)| *n)
    }

    /// Returns whether an offer is all that the n-th host must offer.
    pub(super) fn is_whole(&self, n: usize, offer: &ResourceVector) -> bool {
        self.hosts.get(n).is_none_or(|said| is_whole(offer, said))
    }

    /// Returns the number of VMs that fit on the hosts when they are placed one after the other as the provider does. The first VM
    /// of as many vCPUs as the machine for parallel jobs counts as that machine. If the experiment specifies hosts, returns the
    /// number of specified hosts that are present instead.
    pub(super) fn count_placed(&self, offers: &[ResourceVector], setup: &Setup) -> usize {
        if !self.hosts.is_empty() {
            let both = self.hosts.iter().zip(offers);
            return both.take_while(|(said, offer)| is_whole(offer, said)).count();
        }
        let mut fleet = HostFleet::default();
        for (id, offer) in (0..).map(HostId::new).zip(offers) {
            fleet.add_host(id, *offer);
        }
        let mut placer = setup.terms.placement.make_placer();
        let rooms = self.vm_rooms(setup);
        let mut place = |(vm, room): (u32, &ResourceVector)| {
            let want = PlacementRequest { room: *room, market: Market::OnDemand };
            let chance = &mut RandomStream::new(setup.seed, "placement", vm.into());
            let (host, _) = placer.choose_host(Time::ZERO, &want, &fleet, chance)?;
            fleet.place_vm(host, VmId::new(vm), *room, want.market).then_some(())
        };
        (0..).zip(&rooms).map_while(&mut place).count()
    }

    /// Returns the room that each VM takes on its host.
    fn vm_rooms(&self, setup: &Setup) -> Vec<ResourceVector> {
        let kinds = setup.memory_filled();
        let vcpus_of = |kind| setup.catalogue.get(kind).map_or(0, |kind| kind.vcpus);
        let is_machine = |kind: &&TypeName| setup.is_two_tier(kind);
        let mut machine = kinds.keys().find(is_machine);
        let room = |vcpus: &u32| {
            let kind = match machine.take_if(|kind| vcpus_of(kind) == *vcpus) {
                Some(machine) => Some(machine),
                None => kinds.keys().find(|kind| !is_machine(kind) && vcpus_of(kind) == *vcpus),
            };
            let filled = kind.and_then(|kind| kinds.get(kind)).copied().unwrap_or_default();
            ResourceVector { filled, ..ResourceVector::of_vcpus(*vcpus) }
        };
        self.vms.iter().map(room).collect()
    }
}

/// Returns whether an offer has everything that is specified for a host.
fn is_whole(offer: &ResourceVector, said: &ResourceVector) -> bool {
    offer.vcpus >= said.vcpus && offer.memory >= said.memory && offer.disk >= said.disk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stands_for_one_that_is_said_to_have_no_more() {
        let host = |vcpus, memory| ResourceVector::new(vcpus, Bytes::new(memory));
        let demand = RunDemand::of_hosts(&[host(8, 100), host(8, 50)], BTreeSet::new());
        let vacant = |there: &[ResourceVector]| demand.first_vacant(there.iter());
        assert_eq!([vacant(&[]), vacant(&[host(8, 100)]), vacant(&[host(8, 50)])], [0, 1, 0]);
        assert_eq!(vacant(&[host(8, 50), host(8, 100)]), 2, "all are there");
        let whole =
            |memory| demand.is_whole(1, &demand.offer_nth(1, host(9, memory), Bytes::new(memory)));
        assert_eq!([whole(49), whole(50), whole(51)], [false, true, true]);
        let holds = host(9, u64::MAX);
        let offered = |fills_memory| {
            let demand = RunDemand { fills_memory, ..RunDemand::default() };
            demand.offer_nth(0, holds, Bytes::new(70)).memory
        };
        assert_eq!([offered(false), offered(true)], [holds.memory, Bytes::new(70)]);
        assert!(RunDemand::default().is_whole(0, &host(1, 0)), "nobody said what it is to have");
    }
}
