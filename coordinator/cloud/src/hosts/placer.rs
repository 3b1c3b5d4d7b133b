//! Who says on which host a VM goes.

use dormouse_units::{HostId, Stream, Time, VmId};

use crate::{Fleet, Host, Market};

/// What a launch asks of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The room it takes.
    pub room: Host,
    /// How it is bought: an on-demand VM may have the room of spot VMs.
    pub market: Market,
}

/// A host of the fleet, and the spot VMs there that must end before there is room: none of them where
/// there is room now.
pub type Placing = (HostId, Vec<VmId>);

/// Says on which host a VM goes. Same fleet at the same time, same answer: always.
pub trait Placer: std::fmt::Debug + Send {
    /// Where it goes; `None` if no host will do. `chance` decides between hosts that are as good as
    /// each other, where the rule says so. A placer is asked about one fleet all its life, and time
    /// never runs backwards.
    fn choose(
        &mut self,
        now: Time,
        want: &Want,
        fleet: &Fleet,
        chance: &mut Stream,
    ) -> Option<Placing>;
}
