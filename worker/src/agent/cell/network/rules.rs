//! What the security groups of an instance allow.

use std::{collections::BTreeSet, net::Ipv4Addr, ops::RangeInclusive};

use dormouse_proto::{
    NETWORK_NAME_BYTES, SECURITY_GROUPS,
    v1::{self, network_rule::OtherSide},
};

/// Most rules of an instance.
const RULES: usize = 1024;
/// First and last address of those that a host has to itself, such as the one of its metadata (RFC 3927).
const LINK_LOCAL: [Ipv4Addr; 2] =
    [Ipv4Addr::new(169, 254, 0, 0), Ipv4Addr::new(169, 254, 255, 255)];
/// Number of TCP.
const TCP: u32 = super::packet::TCP as u32;

/// The place of an instance in its private network, and what its security groups allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellNetwork {
    /// Id of the network.
    pub(crate) id: String,
    pub(crate) address: Ipv4Addr,
    /// Number of leading bits that all addresses of the network share.
    pub(crate) prefix_bits: u8,
    pub(super) rules: InstanceRules,
    /// Names of the security groups.
    pub(crate) group_names: Vec<String>,
}

/// Security groups of an instance, and what they allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InstanceRules {
    /// Ids of the groups.
    groups: BTreeSet<String>,
    allowed: Vec<AllowedConnections>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedConnections {
    is_egress: bool,
    /// Number of the protocol; `None`: every one.
    protocol: Option<u32>,
    ports: RangeInclusive<u16>,
    peer: ConnectionPeer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ConnectionPeer {
    /// Block of addresses: an address of it, and the mask of the bits that they share.
    Block { base: u32, mask: u32 },
    /// Block of addresses of IPv6, which no instance has.
    BlockV6,
    /// Id of a security group.
    Group(String),
}

impl CellNetwork {
    /// Reads a coordinator's description of an instance's network.
    ///
    /// # Errors
    ///
    /// In words, what is wrong with the description.
    pub(crate) fn read(of: &v1::InstanceNetwork) -> Result<Self, String> {
        let address: Ipv4Addr =
            of.address.parse().map_err(|_| "a private address that is none".to_owned())?;
        let bits = u8::try_from(of.prefix_bits).ok().filter(|bits| (8..=30).contains(bits));
        let prefix_bits = bits.ok_or_else(|| format!("a network of {} bits", of.prefix_bits))?;
        if !is_private(address, prefix_bits) {
            return Err(format!(
                "a network of {address}/{prefix_bits}, whose addresses every host has to itself, or none has"
            ));
        }
        let names = of.groups.iter().flat_map(|group| [&group.id, &group.name]);
        let is_long = names.chain([&of.id]).any(|name| name.len() > NETWORK_NAME_BYTES);
        if is_long || of.groups.len() > SECURITY_GROUPS || of.rules.len() > RULES {
            return Err("too many security groups or rules, or too long names".to_owned());
        }
        let allowed = of.rules.iter().map(AllowedConnections::read).collect::<Option<Vec<_>>>();
        let allowed =
            allowed.ok_or_else(|| "a rule of a security group that is none".to_owned())?;
        let groups = of.groups.iter().map(|group| group.id.clone()).collect();
        Ok(Self {
            id: of.id.clone(),
            address,
            prefix_bits,
            rules: InstanceRules { groups, allowed },
            group_names: of.groups.iter().map(|group| group.name.clone()).collect(),
        })
    }

    /// Returns the ports of TCP that some block of addresses may reach, whichever block it is.
    pub(crate) fn open_ports(&self) -> Vec<RangeInclusive<u16>> {
        let open = self.rules.allowed.iter().filter(|rule| {
            !rule.is_egress
                && rule.protocol.is_none_or(|protocol| protocol == TCP)
                && !matches!(rule.peer, ConnectionPeer::Group(_))
        });
        open.map(|rule| rule.ports.clone()).collect()
    }
}

/// Returns whether all addresses with the same leading bits as this one can be those of instances: none of them is one that every
/// instance has to itself, as loopback's and those of its metadata.
fn is_private(address: Ipv4Addr, prefix_bits: u8) -> bool {
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix_bits.into())).unwrap_or(0);
    let first = address.to_bits() & mask;
    let [least, most] = LINK_LOCAL.map(Ipv4Addr::to_bits);
    let has_link_local = first <= most && least <= first | !mask;
    // The first eight bits are those of all of its addresses.
    !has_link_local && !matches!(address.octets()[0], 0 | 127 | 224..)
}

impl AllowedConnections {
    /// Returns whether the rule is about connections of a protocol to a port.
    fn is_about(&self, (protocol, port): (u8, u16)) -> bool {
        self.protocol.is_none_or(|it| it == u32::from(protocol)) && self.ports.contains(&port)
    }

    fn read(of: &v1::NetworkRule) -> Option<Self> {
        let first = u16::try_from(of.first_port).ok()?;
        let ports = first..=u16::try_from(of.last_port).ok()?;
        let peer = match of.other_side.as_ref()? {
            OtherSide::Group(id) => ConnectionPeer::Group(id.clone()).within(id),
            OtherSide::Block(block) => ConnectionPeer::read_block(block),
        }?;
        Some(Self { is_egress: of.is_egress, protocol: of.protocol, ports, peer })
    }
}

impl ConnectionPeer {
    /// Returns the peer if its text is not too long.
    fn within(self, text: &str) -> Option<Self> {
        (text.len() <= NETWORK_NAME_BYTES).then_some(self)
    }

    fn read_block(block: &str) -> Option<Self> {
        let (address, bits) = block.split_once('/')?;
        if address.parse::<std::net::Ipv6Addr>().is_ok() {
            return Some(Self::BlockV6);
        }
        let (address, bits) = (address.parse::<Ipv4Addr>().ok()?, bits.parse::<u32>().ok()?);
        let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
        Some(Self::Block { base: address.to_bits() & mask, mask })
    }
}

impl InstanceRules {
    /// Makes the rules of an instance on another host, of which only the groups are known.
    pub(super) fn of_groups(ids: &[String]) -> Self {
        Self { groups: ids.iter().cloned().collect(), allowed: Vec::new() }
    }

    /// Returns the security groups of which an instance at an address must have one, so that the instance may connect to it there;
    /// none: whatever groups it has. `None`: it may not be connected to. That is also so where more groups are allowed than a packet
    /// can name to another worker ([`SECURITY_GROUPS`]).
    pub(super) fn groups_allowed(&self, at: (u8, u16), address: Ipv4Addr) -> Option<Vec<String>> {
        if self.allow(true, at, (address, &Self::default())) {
            return Some(Vec::new());
        }
        let wanted = self.allowed.iter().filter_map(|rule| match &rule.peer {
            ConnectionPeer::Group(id) if rule.is_egress && rule.is_about(at) => Some(id.clone()),
            _ => None,
        });
        let wanted: BTreeSet<String> = wanted.collect();
        (1..=SECURITY_GROUPS).contains(&wanted.len()).then(|| wanted.into_iter().collect())
    }

    /// Returns whether the instance may make a connection (`is_egress`), or accept one, at a port, with an instance that has this
    /// address and these rules.
    pub(super) fn allow(
        &self,
        is_egress: bool,
        at: (u8, u16),
        (address, of_peer): (Ipv4Addr, &Self),
    ) -> bool {
        self.allowed.iter().any(|rule| {
            rule.is_egress == is_egress
                && rule.is_about(at)
                && match &rule.peer {
                    ConnectionPeer::Block { base, mask } => address.to_bits() & mask == *base,
                    ConnectionPeer::BlockV6 => false,
                    ConnectionPeer::Group(id) => of_peer.groups.contains(id),
                }
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn rule(
        is_egress: bool,
        ports: RangeInclusive<u32>,
        peer: &str,
    ) -> v1::NetworkRule {
        let peer = match peer.contains('/') {
            true => OtherSide::Block(peer.to_owned()),
            false => OtherSide::Group(peer.to_owned()),
        };
        v1::NetworkRule {
            is_egress,
            protocol: Some(TCP),
            first_port: *ports.start(),
            last_port: *ports.end(),
            other_side: Some(peer),
        }
    }

    /// The network of the instance with this last number of its address, whose only group has this name.
    pub(in super::super) fn network(
        last: u8,
        group: &str,
        rules: Vec<v1::NetworkRule>,
    ) -> CellNetwork {
        CellNetwork::read(&wire(last, group, rules)).unwrap()
    }

    fn wire(last: u8, group: &str, rules: Vec<v1::NetworkRule>) -> v1::InstanceNetwork {
        v1::InstanceNetwork {
            id: "vpc-1".to_owned(),
            address: format!("10.0.0.{last}"),
            prefix_bits: 16,
            groups: vec![v1::SecurityGroup {
                id: group.to_owned(),
                name: format!("name of {group}"),
            }],
            rules,
        }
    }

    #[test]
    fn a_rule_allows_its_peers_at_its_ports() {
        let other = network(2, "sg-2", Vec::new());
        let allows = |rules: Vec<v1::NetworkRule>, is_egress, protocol, port| {
            let peer = (other.address, &other.rules);
            network(1, "sg-1", rules).rules.allow(is_egress, (protocol, port), peer)
        };
        let rules = |peer: &str| vec![rule(false, 80..=90, peer)];
        let tcp = super::super::packet::TCP;
        for (peer, expected) in [
            ("10.0.0.0/8", true),
            ("0.0.0.0/0", true),
            ("10.0.0.2/32", true),
            ("10.0.0.3/32", false),
            ("10.1.0.0/16", false),
            ("::/0", false),
            ("sg-2", true),
            ("sg-1", false),
        ] {
            assert_eq!(allows(rules(peer), false, tcp, 85), expected, "{peer}");
            assert!(!allows(rules(peer), false, tcp, 91), "{peer}");
            assert!(!allows(rules(peer), true, tcp, 85), "{peer}");
            assert!(!allows(rules(peer), false, 17, 85), "{peer}");
        }
        let all = v1::NetworkRule { protocol: None, ..rule(true, 0..=65_535, "0.0.0.0/0") };
        assert!(allows(vec![all], true, 17, 5));
    }

    #[test]
    fn groups_of_an_instance_elsewhere_are_as_many_as_a_packet_names() {
        let allowed = |count: usize| {
            let groups = (0..count).map(|n| format!("sg-{n}"));
            // Each twice, as two groups of the instance may have the same rule.
            let rules = groups.flat_map(|id| vec![rule(true, 80..=80, &id); 2]).collect();
            let (from, to) = (network(1, "sg-1", rules).rules, Ipv4Addr::new(10, 0, 0, 9));
            from.groups_allowed((super::super::packet::TCP, 80), to).map(|groups| groups.len())
        };
        assert_eq!([1, SECURITY_GROUPS].map(allowed), [Some(1), Some(SECURITY_GROUPS)]);
        assert_eq!([0, SECURITY_GROUPS + 1].map(allowed), [None, None]);
    }

    #[test]
    fn ports_that_a_block_may_reach_are_open() {
        let all = v1::NetworkRule { protocol: None, ..rule(false, 5..=6, "::/0") };
        let udp = v1::NetworkRule { protocol: Some(17), ..rule(false, 9..=9, "0.0.0.0/0") };
        let rules = vec![
            rule(false, 22..=22, "1.2.3.4/32"),
            rule(true, 1..=1, "0.0.0.0/0"),
            rule(false, 7..=7, "sg-2"),
            all,
            udp,
        ];
        assert_eq!(network(1, "sg-1", rules).open_ports(), [22..=22, 5..=6]);
    }

    #[test]
    fn a_network_that_no_run_needs_is_refused() {
        let right = || wire(1, "sg-1", vec![rule(false, 1..=2, "0.0.0.0/0")]);
        assert!(CellNetwork::read(&right()).is_ok());
        let beside = v1::InstanceNetwork { address: "169.253.7.7".to_owned(), ..right() };
        assert!(CellNetwork::read(&beside).is_ok());
        let many = vec![rule(false, 1..=2, "0.0.0.0/0"); RULES + 1];
        for wrong in [
            v1::InstanceNetwork { address: "::1".to_owned(), ..right() },
            v1::InstanceNetwork { prefix_bits: 32, ..right() },
            v1::InstanceNetwork { address: "169.254.7.7".to_owned(), ..right() },
            v1::InstanceNetwork { address: "169.1.2.3".to_owned(), prefix_bits: 8, ..right() },
            v1::InstanceNetwork { address: "127.0.0.9".to_owned(), ..right() },
            v1::InstanceNetwork { address: "0.0.0.9".to_owned(), ..right() },
            v1::InstanceNetwork { address: "224.0.0.9".to_owned(), ..right() },
            v1::InstanceNetwork { id: "x".repeat(NETWORK_NAME_BYTES + 1), ..right() },
            v1::InstanceNetwork { rules: many, ..right() },
            v1::InstanceNetwork { rules: vec![rule(false, 1..=65_536, "sg-1")], ..right() },
            v1::InstanceNetwork { rules: vec![rule(false, 1..=2, "10.0.0.1/33")], ..right() },
            v1::InstanceNetwork { rules: vec![v1::NetworkRule::default()], ..right() },
        ] {
            CellNetwork::read(&wrong).unwrap_err();
        }
    }
}
