//! The place of an instance in its region's network.

use std::net::Ipv4Addr;

/// The place of an instance in its region's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceSeat {
    pub(crate) subnet: String,
    pub(crate) vpc: String,
    pub(crate) private_ip: Ipv4Addr,
    pub(crate) has_public_ip: bool,
}
