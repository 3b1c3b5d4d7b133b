//! VMs close together.

use dormouse_units::{HostId, VmId};

use crate::{Fleet, Placer, Want};

/// Best fit: the host with fewest free vCPUs that holds it, the lowest id among equals.
#[derive(Clone, Copy, Debug)]
pub struct Pack;

impl Placer for Pack {
    fn choose(&self, want: &Want, fleet: &Fleet) -> Option<(HostId, Vec<VmId>)> {
        let mut hosts = fleet.with_vcpus(want.room.vcpus).flat_map(|(_, hosts)| hosts);
        let host = hosts.find(|host| fleet.free(**host).holds(&want.room))?;
        Some((*host, Vec::new()))
    }
}
