//! Interface of placers, which choose the host for a VM.

use dormouse_units::{HostId, RandomStream, Time, VmId};

use crate::{HostFleet, Market, ResourceVector};

/// A request to a placer, for a host for one VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementRequest {
    /// Room that the VM takes.
    pub room: ResourceVector,
    /// Market in which the VM is bought: an on-demand VM may displace spot VMs.
    pub market: Market,
}

/// A host for a VM, and the spot VMs on it that must end to make room (none if there is room).
pub type Placing = (HostId, Vec<VmId>);

/// Chooses hosts for VMs. The result depends only on the fleet and the time.
pub trait Placer: std::fmt::Debug + Send {
    /// Chooses a host for a VM; `None` if no host will do. `chance` decides between equally good
    /// hosts if the rule says so. A placer must always be called with the same fleet, and with
    /// times that never decrease.
    fn choose_host(
        &mut self,
        now: Time,
        want: &PlacementRequest,
        fleet: &HostFleet,
        chance: &mut RandomStream,
    ) -> Option<Placing>;
}
