//! Requests for VMs, and what becomes of them.

use dormouse_units::{HostId, Price, Time, TypeName, VmId};

use crate::{Host, Market};

/// A user's request for a VM.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRequest<'a> {
    /// The instance type.
    pub kind: &'a TypeName,
    /// The market it is bought in.
    pub market: Market,
    /// Most that is paid for the VM, per hour; `None`: whatever it costs, or what the provider's
    /// terms say.
    pub bid: Option<Price>,
    /// Whether the VM counts against the limits of VMs that one user can have at a time; the
    /// requests of many customers, each for a few VMs, do not.
    pub limited: bool,
}

/// A granted request, as its user hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The host that will carry the VM.
    pub host: HostId,
    /// Price of the VM at first, per hour.
    pub price: Price,
    /// Most that is paid for the VM, per hour; `None`: whatever it costs.
    pub bid: Option<Price>,
    /// Instant at which the VM has booted; `None`: others have to leave before it can boot.
    pub ready_at: Option<Time>,
    /// Spot VMs that have to leave: some hibernate now, and the others are to end.
    pub victims: Vec<VmId>,
}

/// Why a request for a VM was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// No such type.
    #[error("there is no instance type '{kind}'; the catalogue has {known}")]
    UnknownType {
        /// The name asked for.
        kind: TypeName,
        /// The names there are.
        known: String,
    },
    /// The type is not sold in that market.
    #[error("{kind} is not offered in the {market} market")]
    NotOffered {
        /// The instance type asked for.
        kind: TypeName,
        /// The market asked for.
        market: Market,
    },
    /// The VM costs more than the bid.
    #[error("a {market} {kind} costs {price}, more than the bid of {bid}")]
    Outbid {
        /// The instance type asked for.
        kind: TypeName,
        /// The market asked for.
        market: Market,
        /// Price of the VM now.
        price: Price,
        /// The most that the user pays.
        bid: Price,
    },
    /// As many VMs of the type run as the provider allows.
    #[error("the limit of {limit} {market} {kind} at a time is reached")]
    Limit {
        /// The instance type asked for.
        kind: TypeName,
        /// The market asked for.
        market: Market,
        /// The most VMs of the type at a time in this market.
        limit: u32,
    },
    /// The provider has no more spot VMs of the type to give now.
    #[error("no more than {most} spot {kind} can be had now")]
    Unavailable {
        /// The instance type asked for.
        kind: TypeName,
        /// The most spot VMs of the type that there can be now.
        most: u32,
    },
    /// No host has room.
    #[error("no host has {room} free for a VM of type {kind}")]
    NoCapacity {
        /// The instance type asked for.
        kind: TypeName,
        /// Room that a VM of the type needs.
        room: Host,
    },
    /// The id was used before in this run.
    #[error("{0} has been used before")]
    UsedId(VmId),
}
