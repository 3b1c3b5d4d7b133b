//! What a scheduler may want of the hosts at once, and whether they have it.

use std::collections::BTreeSet;

use dormouse_cloud::{Fleet, Host, Market, PlacerName, Want};
use dormouse_units::{Bytes, HostId, TypeName, VmId};

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

    /// How many of its VMs find a host, one placed after the other as the provider does.
    pub(super) fn placed(&self, offers: &[Host], placer: PlacerName) -> usize {
        let mut fleet = Fleet::default();
        for (id, offer) in (0..).map(HostId::new).zip(offers) {
            fleet.join(id, *offer);
        }
        let mut place = |(vm, vcpus): (u32, &u32)| {
            let room = Host { vcpus: *vcpus, memory: Bytes::ZERO, disk: Bytes::ZERO };
            let want = Want { room, market: Market::OnDemand };
            let (host, _) = placer.placer().choose(&want, &fleet)?;
            fleet.place(host, VmId::new(vm), room, want.market).then_some(())
        };
        (0..).zip(&self.vms).map_while(&mut place).count()
    }
}
