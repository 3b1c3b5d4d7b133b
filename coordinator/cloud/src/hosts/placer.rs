//! Interface of placers, which choose the host for a VM.

use dormouse_units::{HostId, Stream, Time, VmId};

use crate::{Fleet, Host, Market};

/// A request to a placer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Room that the VM takes.
    pub room: Host,
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
    fn choose(
        &mut self,
        now: Time,
        want: &Want,
        fleet: &Fleet,
        chance: &mut Stream,
    ) -> Option<Placing>;
}
