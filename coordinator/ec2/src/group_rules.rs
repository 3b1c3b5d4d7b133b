//! Rules of security groups: each rule allows one peer, and is shown by itself or as a part of a permission.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::ip_block::IpBlock;
use crate::resource_tags::tags_to_wire;

/// Source or destination that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RulePeer {
    Ipv4(String),
    Ipv6(String),
    PrefixList(String),
    /// A security group and its account's number.
    Group {
        id: String,
        owner: String,
    },
}

/// A rule of a security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupRule {
    pub(crate) id: String,
    pub(crate) is_egress: bool,
    /// Protocol: `tcp`, `udp`, `icmp`, `icmpv6`, a number, or `-1` for all.
    pub(crate) protocol: String,
    /// The first and the last port, or a type and a code of ICMP; `None`: all.
    pub(crate) ports: Option<(i64, i64)>,
    pub(crate) peer: RulePeer,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<(String, String)>,
}

fn invalid(text: impl Into<String>) -> ApiError {
    ApiError::new("InvalidParameterValue", text)
}

/// EC2's name for a protocol, given by name or number.
fn protocol_name(said: &str) -> String {
    match said.to_ascii_lowercase().as_str() {
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        "1" => "icmp".to_owned(),
        "58" => "icmpv6".to_owned(),
        "all" => "-1".to_owned(),
        other => other.to_owned(),
    }
}

/// Reads the protocol and the ports of a permission, or of a changed rule.
///
/// # Errors
///
/// `InvalidParameterValue`: the protocol or a port is missing or invalid.
pub(crate) fn read_protocol(of: &WireValue) -> Result<(String, Option<(i64, i64)>), ApiError> {
    let Some(protocol) = of.text("IpProtocol").filter(|protocol| !protocol.is_empty()) else {
        return Err(invalid(
            "Invalid value 'null' for protocol. VPC security group rules must specify protocols explicitly.",
        ));
    };
    let protocol = protocol_name(protocol);
    let is_known = ["tcp", "udp", "icmp", "icmpv6", "-1"].contains(&protocol.as_str());
    if !is_known && protocol.parse::<u8>().is_err() {
        return Err(invalid(format!(
            "Invalid value '{protocol}' for IP protocol. Unknown protocol."
        )));
    }
    let ports = of.integer("FromPort").zip(of.integer("ToPort"));
    match (protocol.as_str(), ports) {
        ("tcp" | "udp", None) => Err(invalid(
            "Invalid value for portRange. Must specify both from and to ports with TCP/UDP.",
        )),
        ("icmp" | "icmpv6", None) => {
            Err(invalid("Invalid value for portRange. Must specify both type and code with ICMP."))
        }
        ("tcp" | "udp", Some((from, to)))
            if !(0..=65_535).contains(&from) || !(0..=65_535).contains(&to) =>
        {
            let wrong = if (0..=65_535).contains(&from) { to } else { from };
            Err(invalid(format!("TCP/UDP port ({wrong}) out of range")))
        }
        ("tcp" | "udp", Some((from, to))) if from > to => {
            Err(invalid(format!("Invalid TCP/UDP port range ({from}:{to})")))
        }
        ("tcp" | "udp" | "icmp" | "icmpv6", ports) => Ok((protocol, ports)),
        _ => Ok((protocol, None)),
    }
}

/// Reads a block of IPv4 or IPv6 addresses, in the form that rules keep.
///
/// # Errors
///
/// `InvalidParameterValue`: the text is no such block.
pub(crate) fn read_block(text: &str, is_v6: bool) -> Result<String, ApiError> {
    let wrong = || invalid(format!("CIDR block {text} is malformed"));
    if !is_v6 {
        return IpBlock::read(text).map(|_| text.to_owned()).ok_or_else(wrong);
    }
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let is_right = address.parse::<std::net::Ipv6Addr>().is_ok()
        && bits.parse::<u8>().is_ok_and(|bits| bits <= 128);
    if is_right { Ok(text.to_owned()) } else { Err(wrong()) }
}

impl RulePeer {
    fn text(&self) -> &str {
        match self {
            Self::Ipv4(text) | Self::Ipv6(text) | Self::PrefixList(text) => text,
            Self::Group { id, .. } => id,
        }
    }
}

impl GroupRule {
    /// The rule that every group of a VPC has at first: all outgoing traffic is allowed.
    pub(crate) fn all_out(id: String) -> Self {
        Self {
            id,
            is_egress: true,
            protocol: "-1".to_owned(),
            ports: None,
            peer: RulePeer::Ipv4("0.0.0.0/0".to_owned()),
            description: None,
            tags: Vec::new(),
        }
    }

    /// The rule that the default group of a VPC has besides: its instances may reach each other.
    pub(crate) fn all_of_group(id: String, group: &str, owner: String) -> Self {
        let peer = RulePeer::Group { id: group.to_owned(), owner };
        Self { is_egress: false, peer, ..Self::all_out(id) }
    }

    /// Whether both rules allow the same, whatever their ids and descriptions.
    pub(crate) fn allows_like(&self, other: &Self) -> bool {
        (self.is_egress, &self.protocol, self.ports, &self.peer)
            == (other.is_egress, &other.protocol, other.ports, &other.peer)
    }

    /// Text for the rule in EC2's errors.
    pub(crate) fn about(&self) -> String {
        let protocol = match self.protocol.as_str() {
            "-1" => "ALL".to_owned(),
            other => other.to_ascii_uppercase(),
        };
        let ports = self.ports.map(|(from, to)| format!(", from port: {from}, to port: {to}"));
        format!("peer: {}, {protocol}{}, ALLOW", self.peer.text(), ports.unwrap_or_default())
    }

    /// The rule as an element of DescribeSecurityGroupRules' answer.
    pub(crate) fn to_wire(&self, group: &str, owner: &str, region: &str) -> WireValue {
        let (from, to) = self.ports.unwrap_or((-1, -1));
        let wire = WireValue::structure()
            .with("SecurityGroupRuleId", self.id.as_str())
            .with(
                "SecurityGroupRuleArn",
                format!("arn:aws:ec2:{region}:{owner}:security-group-rule/{}", self.id),
            )
            .with("GroupId", group)
            .with("GroupOwnerId", owner)
            .with("IsEgress", self.is_egress)
            .with("IpProtocol", self.protocol.as_str())
            .with("FromPort", from)
            .with("ToPort", to)
            .with("Tags", tags_to_wire(&self.tags))
            .with_some("Description", self.description.as_deref());
        match &self.peer {
            RulePeer::Ipv4(block) => wire.with("CidrIpv4", block.as_str()),
            RulePeer::Ipv6(block) => wire.with("CidrIpv6", block.as_str()),
            RulePeer::PrefixList(list) => wire.with("PrefixListId", list.as_str()),
            RulePeer::Group { id, owner } => {
                let other = WireValue::structure()
                    .with("GroupId", id.as_str())
                    .with("UserId", owner.as_str());
                wire.with("ReferencedGroupInfo", other)
            }
        }
    }
}

impl GroupRule {
    /// The rule as an element of the answers of RevokeSecurityGroupIngress and RevokeSecurityGroupEgress.
    pub(crate) fn revoked_to_wire(&self, group: &str) -> WireValue {
        let (from, to) = self.ports.unwrap_or((-1, -1));
        let member = match &self.peer {
            RulePeer::Ipv4(_) => "CidrIpv4",
            RulePeer::Ipv6(_) => "CidrIpv6",
            RulePeer::PrefixList(_) => "PrefixListId",
            RulePeer::Group { .. } => "ReferencedGroupId",
        };
        WireValue::structure()
            .with("SecurityGroupRuleId", self.id.as_str())
            .with("GroupId", group)
            .with("IsEgress", self.is_egress)
            .with("IpProtocol", self.protocol.as_str())
            .with("FromPort", from)
            .with("ToPort", to)
            .with(member, self.peer.text())
            .with_some("Description", self.description.as_deref())
    }
}

/// Encodes rules as permissions: the rules with the same protocol and ports are one permission.
pub(crate) fn permissions_to_wire<'a>(rules: impl Iterator<Item = &'a GroupRule>) -> WireValue {
    let mut groups: Vec<Vec<&GroupRule>> = Vec::new();
    for rule in rules {
        let is_alike = |group: &&mut Vec<&GroupRule>| {
            group.first().is_some_and(|of| (&of.protocol, of.ports) == (&rule.protocol, rule.ports))
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(rule),
            None => groups.push(vec![rule]),
        }
    }
    WireValue::list_of(groups.iter().map(|rules| permission_to_wire(rules)))
}

fn permission_to_wire(rules: &[&GroupRule]) -> WireValue {
    let mut lists = [const { Vec::new() }; 4];
    for rule in rules {
        let peer = WireValue::structure();
        let (list, peer) = match &rule.peer {
            RulePeer::Ipv4(block) => (0, peer.with("CidrIp", block.as_str())),
            RulePeer::Ipv6(block) => (1, peer.with("CidrIpv6", block.as_str())),
            RulePeer::PrefixList(list) => (2, peer.with("PrefixListId", list.as_str())),
            RulePeer::Group { id, owner } => {
                (3, peer.with("GroupId", id.as_str()).with("UserId", owner.as_str()))
            }
        };
        let described = peer.with_some("Description", rule.description.as_deref());
        if let Some(list) = lists.get_mut(list) {
            list.push(described);
        }
    }
    let [v4, v6, prefixes, groups] = lists;
    let first = rules.first();
    let ports = first.and_then(|rule| rule.ports);
    WireValue::structure()
        .with("IpProtocol", first.map(|rule| rule.protocol.as_str()).unwrap_or_default())
        .with("IpRanges", v4)
        .with("Ipv6Ranges", v6)
        .with("PrefixListIds", prefixes)
        .with("UserIdGroupPairs", groups)
        .with_some("FromPort", ports.map(|(from, _)| from))
        .with_some("ToPort", ports.map(|(_, to)| to))
}
