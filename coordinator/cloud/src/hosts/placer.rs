//! The interface of placers: they say on which host a VM goes.

use dormouse_units::{HostId, Stream, Time, VmId};

use crate::{Fleet, Host, Market};

/// Request of a launch to a placer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The room that the VM takes.
    pub room: Host,
    /// Market in which the VM is bought: an on-demand VM may have the room of spot VMs.
    pub market: Market,
}

/// A host for a VM, and the spot VMs on it that must end before there is room (none if there is
/// room now).
pub type Placing = (HostId, Vec<VmId>);

/// Chooses the hosts of VMs. The same fleet at the same time always gives the same answer.
pub trait Placer: std::fmt::Debug + Send {
    /// Host for a VM; `None` if no host will do. `chance` decides between equally good hosts, where
    /// the rule says so. A placer is asked about one fleet all its life, and time never runs
    /// backwards.
    fn choose(
        &mut self,
        now: Time,
        want: &Want,
        fleet: &Fleet,
        chance: &mut Stream,
    ) -> Option<Placing>;
}
