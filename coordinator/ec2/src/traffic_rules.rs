//! The place of an instance in its private network, and the connections that its security groups allow.

use std::net::Ipv4Addr;

use crate::group_rules::{GroupRule, RulePeer};

/// The place of an instance in its VPC, and what its security groups allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateNetwork {
    /// Id of the VPC.
    pub vpc: String,
    /// Private address of the instance.
    pub address: Ipv4Addr,
    /// Length of the prefix of the VPC's block that has the address.
    pub prefix_bits: u8,
    /// Id and name of each security group of the instance.
    pub groups: Vec<(String, String)>,
    /// Connections that the groups allow.
    pub rules: Vec<AllowedTraffic>,
}

/// Connections that a rule of a security group allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTraffic {
    /// True if the instance may make the connections; false if others may make them to the instance.
    pub is_egress: bool,
    /// Number of the IP protocol; `None`: every protocol.
    pub protocol: Option<u8>,
    /// The first and the last port.
    pub ports: (u16, u16),
    /// The other side of the connections.
    pub peer: TrafficPeer,
}

/// The other side of connections that a security group allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficPeer {
    /// Block of addresses, in CIDR notation.
    Block(String),
    /// Id of a security group: all its instances.
    Group(String),
}

impl AllowedTraffic {
    /// Converts a rule; `None`: it allows nothing that is played, such as one about a prefix list or about ICMP.
    pub(crate) fn of_rule(rule: &GroupRule) -> Option<Self> {
        let protocol = match rule.protocol.as_str() {
            "-1" => None,
            "tcp" => Some(6),
            "udp" => Some(17),
            _ => return None,
        };
        let port = |number: i64| u16::try_from(number.clamp(0, 65_535)).unwrap_or(u16::MAX);
        let peer = match &rule.peer {
            RulePeer::Ipv4(block) | RulePeer::Ipv6(block) => TrafficPeer::Block(block.clone()),
            RulePeer::Group { id, .. } => TrafficPeer::Group(id.clone()),
            RulePeer::PrefixList(_) => return None,
        };
        let ports = rule.ports.map_or((0, u16::MAX), |(first, last)| (port(first), port(last)));
        Some(Self { is_egress: rule.is_egress, protocol, ports, peer })
    }
}
