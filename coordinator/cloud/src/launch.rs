//! Requests for VMs and their results.

use dormouse_units::{HostId, Price, Time, TypeName, VmId};

use crate::{Market, ResourceVector};

/// A user's request for a VM.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRequest<'a> {
    /// Instance type that the user requests.
    pub kind: &'a TypeName,
    /// Market in which the VM is bought.
    pub market: Market,
    /// Greatest price per hour that the user pays; `None`: unlimited, or the default bid of the provider's terms.
    pub bid: Option<Price>,
    /// True if the VM counts against the limits of one user; requests of many customers, each for a
    /// few VMs, don't.
    pub limited: bool,
}

/// A granted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedLaunch {
    /// The host that will carry the VM.
    pub host: HostId,
    /// Price per hour of the VM at its launch.
    pub price: Price,
    /// Greatest price per hour that the user pays; `None`: unlimited.
    pub bid: Option<Price>,
    /// Time at which the VM has booted; `None`: other VMs have to leave first.
    pub ready_at: Option<Time>,
    /// Spot VMs that have to leave: some hibernate now, others will end.
    pub victims: Vec<VmId>,
}

/// Reasons for refusing a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The instance type doesn't exist.
    #[error("there is no instance type '{kind}'; the catalogue has {known}")]
    UnknownType {
        /// The requested instance type, which does not exist.
        kind: TypeName,
        /// Names of the existing types.
        known: String,
    },
    /// The instance type is not sold in the requested market.
    #[error("{kind} is not offered in the {market} market")]
    NotOffered {
        /// The requested instance type.
        kind: TypeName,
        /// The requested market.
        market: Market,
    },
    /// The VM's price exceeds the bid.
    #[error("a {market} {kind} costs {price}, more than the bid of {bid}")]
    Outbid {
        /// The requested instance type.
        kind: TypeName,
        /// The requested market.
        market: Market,
        /// Price of the VM now.
        price: Price,
        /// The user's bid.
        bid: Price,
    },
    /// The user has as many VMs of the type as the provider allows.
    #[error("the limit of {limit} {market} {kind} at a time is reached")]
    Limit {
        /// The requested instance type.
        kind: TypeName,
        /// The requested market.
        market: Market,
        /// The most VMs of the type at a time in this market.
        limit: u32,
    },
    /// The provider has no more spot VMs of the type at present.
    #[error("no more than {most} spot {kind} can be had now")]
    Unavailable {
        /// The requested instance type.
        kind: TypeName,
        /// Number of spot VMs of the type that there can be at present.
        most: u32,
    },
    /// No host has room.
    #[error("no host has {room} free for a VM of type {kind}")]
    NoCapacity {
        /// The requested instance type.
        kind: TypeName,
        /// Room that a VM of the type needs.
        room: ResourceVector,
    },
    /// The id for the new VM was used before in this run.
    #[error("{0} has been used before")]
    UsedId(VmId),
}
