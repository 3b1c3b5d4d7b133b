//! What a scheduler may want of the hosts at once, and whether they have it.

use std::collections::BTreeSet;

use dormouse_cloud::{Host, Placement};
use dormouse_units::{Bytes, HostId, TypeName};

/// What a scheduler may want of the hosts at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The vCPUs of each VM that may run at once, in the order in which they are launched.
    pub vms: Vec<u32>,
    /// The types that may be launched: on some host there is room for one of each.
    pub kinds: BTreeSet<TypeName>,
}

impl Demand {
    /// Most vCPUs that may be busy at once.
    #[must_use]
    pub fn vcpus(&self) -> u32 {
        self.vms.iter().fold(0, |sum, vcpus| sum.saturating_add(*vcpus))
    }

    /// How many of its VMs find a host, one placed after the other as the provider does.
    pub(super) fn placed(&self, offers: &[Host]) -> usize {
        let mut placement = Placement::default();
        for (id, offer) in (0..).map(HostId::new).zip(offers) {
            placement.join(id, *offer);
        }
        let want = |vcpus: u32| Host { vcpus, memory: Bytes::ZERO };
        self.vms.iter().take_while(|vcpus| placement.place(want(**vcpus)).is_some()).count()
    }
}
