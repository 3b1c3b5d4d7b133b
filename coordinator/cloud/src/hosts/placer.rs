//! The rules by which VMs go on hosts.

use dormouse_units::{HostId, VmId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fleet, Host, Market, Pack, Preempting, Spread};

/// What a launch asks of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The room it takes.
    pub room: Host,
    /// How it is bought.
    pub market: Market,
}

/// Says on which host a VM goes. Same fleet, same answer: always.
pub trait Placer: std::fmt::Debug + Sync {
    /// A host of the fleet, and the spot VMs there that must end before there is room: none of them
    /// where there is room now. `None` if no host will do.
    fn choose(&self, want: &Want, fleet: &Fleet) -> Option<(HostId, Vec<VmId>)>;
}

/// The rules there are, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacerName {
    /// On the host with most free vCPUs.
    #[default]
    Spread,
    /// On the host with fewest free vCPUs that has room.
    Pack,
    /// As `spread`, but an on-demand VM for which there is no room gets that of the fewest spot VMs, once
    /// their notice has run out.
    Preempting,
}

impl PlacerName {
    /// What follows the rule.
    #[must_use]
    pub fn placer(self) -> &'static dyn Placer {
        match self {
            Self::Spread => &Spread,
            Self::Pack => &Pack,
            Self::Preempting => &Preempting,
        }
    }
}
