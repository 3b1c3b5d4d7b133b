//! What a scheduler may want of the hosts at once, and whether they have it.

use std::collections::BTreeSet;

use dormouse_cloud::{Fleet, Host, Market, Want};
use dormouse_engine::Setup;
use dormouse_units::{HostId, Stream, Time, TypeName, VmId};

/// What a scheduler may want of the hosts at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The vCPUs of each VM that may run at once, in the order in which they are launched.
    pub vms: Vec<u32>,
    /// The types that may be launched: on some host there is room for one of each.
    pub kinds: BTreeSet<TypeName>,
    /// Most vCPUs that a host is to offer, where it matters how many there are; `None`: all it has.
    pub most: Option<u32>,
}

impl Demand {
    /// Most vCPUs that may be busy at once.
    #[must_use]
    pub fn vcpus(&self) -> u32 {
        self.vms.iter().fold(0, |sum, vcpus| sum.saturating_add(*vcpus))
    }

    /// What a host that holds so much is to offer.
    pub(super) fn offered(&self, host: Host) -> Host {
        Host { vcpus: host.vcpus.min(self.most.unwrap_or(u32::MAX)), ..host }
    }

    /// How many of its VMs find a host, one placed after the other as the provider does. They fill
    /// memory as the setup says, in which the first of as many vCPUs as the machine for parallel jobs
    /// is that one.
    pub(super) fn placed(&self, offers: &[Host], setup: &Setup) -> usize {
        let mut fleet = Fleet::default();
        for (id, offer) in (0..).map(HostId::new).zip(offers) {
            fleet.join(id, *offer);
        }
        let mut placer = setup.terms.placement.placer();
        let rooms = self.rooms(setup);
        let mut place = |(vm, room): (u32, &Host)| {
            let want = Want { room: *room, market: Market::OnDemand };
            let chance = &mut Stream::new(setup.seed, "placement", vm.into());
            let (host, _) = placer.choose(Time::ZERO, &want, &fleet, chance)?;
            fleet.place(host, VmId::new(vm), *room, want.market).then_some(())
        };
        (0..).zip(&rooms).map_while(&mut place).count()
    }

    /// What each of its VMs takes of its host.
    fn rooms(&self, setup: &Setup) -> Vec<Host> {
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
            Host { filled, ..Host::of_vcpus(*vcpus) }
        };
        self.vms.iter().map(room).collect()
    }
}
