//! The records of a region's network, kept between calls. With virtual time they block nothing; live, workers apply the rules of
//! security groups to the traffic of instances (`traffic_rules`).

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::group_rules::GroupRule;
use crate::ip_block::{IpBlock, Ipv6Block};

/// Tags of a resource, in the order in which they were set.
pub(crate) type ResourceTags = Vec<(String, String)>;

/// A VPC.
#[derive(Clone, Debug)]
pub(crate) struct VpcRecord {
    pub(crate) id: String,
    pub(crate) block: IpBlock,
    /// Address blocks that were added to the VPC, each with the id of its association.
    pub(crate) more_blocks: Vec<(String, IpBlock)>,
    /// Blocks of IPv6 addresses, each with the id of its association.
    pub(crate) v6_blocks: Vec<(String, Ipv6Block)>,
    pub(crate) is_default: bool,
    pub(crate) tenancy: String,
    pub(crate) tags: ResourceTags,
}

/// Block of addresses that a reservation keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReservedBlock {
    Ipv4(IpBlock),
    Ipv6(Ipv6Block),
}

/// Reservation of a block of a subnet's addresses: instances that name no address get none of them.
#[derive(Clone, Debug)]
pub(crate) struct CidrReservation {
    pub(crate) id: String,
    /// Type of the CIDR reservation: `prefix` or `explicit`.
    pub(crate) kind: String,
    pub(crate) block: ReservedBlock,
    pub(crate) description: Option<String>,
    pub(crate) tags: ResourceTags,
}

/// A subnet, which is in one zone.
#[derive(Clone, Debug)]
pub(crate) struct SubnetRecord {
    pub(crate) id: String,
    pub(crate) vpc: String,
    pub(crate) zone: String,
    pub(crate) block: IpBlock,
    pub(crate) is_default: bool,
    pub(crate) maps_public_ip: bool,
    pub(crate) assigns_ipv6: bool,
    /// The block of IPv6 addresses with the id of its association; `None`: the subnet has none.
    pub(crate) v6_block: Option<(String, Ipv6Block)>,
    /// Whether the names of instances are to resolve to their IPv4 address, and to their IPv6 address.
    pub(crate) named_records: (bool, bool),
    pub(crate) reservations: Vec<CidrReservation>,
    /// Indices in the subnet's block of the addresses that instances have.
    pub(crate) taken: BTreeSet<u32>,
    /// Index in the subnet's block of the address that is tried first for the next instance.
    pub(crate) next_place: u32,
    pub(crate) tags: ResourceTags,
}

/// An internet gateway, which may be attached to a VPC.
#[derive(Clone, Debug)]
pub(crate) struct GatewayRecord {
    pub(crate) id: String,
    pub(crate) vpc: Option<String>,
    pub(crate) tags: ResourceTags,
}

/// The main route table of a VPC.
#[derive(Clone, Debug)]
pub(crate) struct RouteTable {
    pub(crate) id: String,
    pub(crate) association: String,
    pub(crate) vpc: String,
    /// Routes in addition to the local route: a destination and a gateway each.
    pub(crate) routes: Vec<(String, String)>,
    pub(crate) tags: ResourceTags,
}

/// A security group with its rules, which have an effect on live instances alone.
#[derive(Clone, Debug)]
pub(crate) struct GroupRecord {
    pub(crate) id: String,
    pub(crate) vpc: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) rules: Vec<GroupRule>,
    pub(crate) tags: ResourceTags,
}

/// The network of an account in a region: its VPCs, subnets, gateways, route tables and security groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionNetwork {
    pub(crate) vpcs: Vec<VpcRecord>,
    pub(crate) subnets: Vec<SubnetRecord>,
    pub(crate) gateways: Vec<GatewayRecord>,
    pub(crate) tables: Vec<RouteTable>,
    pub(crate) groups: Vec<GroupRecord>,
}

impl RegionNetwork {
    /// A region without any network.
    pub(crate) const fn empty() -> Self {
        Self {
            vpcs: Vec::new(),
            subnets: Vec::new(),
            gateways: Vec::new(),
            tables: Vec::new(),
            groups: Vec::new(),
        }
    }

    pub(crate) fn vpc(&self, id: &str) -> Option<&VpcRecord> {
        self.vpcs.iter().find(|vpc| vpc.id == id)
    }

    pub(crate) fn default_vpc(&self) -> Option<&VpcRecord> {
        self.vpcs.iter().find(|vpc| vpc.is_default)
    }

    pub(crate) fn subnet(&self, id: &str) -> Option<&SubnetRecord> {
        self.subnets.iter().find(|subnet| subnet.id == id)
    }

    pub(crate) fn subnet_mut(&mut self, id: &str) -> Option<&mut SubnetRecord> {
        self.subnets.iter_mut().find(|subnet| subnet.id == id)
    }

    /// The default subnet of a zone.
    pub(crate) fn default_subnet(&self, zone: &str) -> Option<&SubnetRecord> {
        self.subnets.iter().find(|subnet| subnet.is_default && subnet.zone == zone)
    }

    pub(crate) fn group(&self, id: &str) -> Option<&GroupRecord> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// The security group of a VPC for instances that name none.
    pub(crate) fn default_group(&self, vpc: &str) -> Option<&GroupRecord> {
        self.groups.iter().find(|group| group.vpc == vpc && group.name == "default")
    }

    /// The tags of a record, found by its id; `None`: no record has that id.
    pub(crate) fn tags_mut(&mut self, id: &str) -> Option<&mut ResourceTags> {
        let vpcs = self.vpcs.iter_mut().map(|it| (&it.id, &mut it.tags));
        let subnets = self.subnets.iter_mut().flat_map(|it| {
            let reserved = it.reservations.iter_mut().map(|own| (&own.id, &mut own.tags));
            std::iter::once((&it.id, &mut it.tags)).chain(reserved)
        });
        let gateways = self.gateways.iter_mut().map(|it| (&it.id, &mut it.tags));
        let tables = self.tables.iter_mut().map(|it| (&it.id, &mut it.tags));
        let groups = self.groups.iter_mut().flat_map(|group| {
            let rules = group.rules.iter_mut().map(|rule| (&rule.id, &mut rule.tags));
            std::iter::once((&group.id, &mut group.tags)).chain(rules)
        });
        let all = vpcs.chain(subnets).chain(gateways).chain(tables);
        all.chain(groups).find(|(own, _)| *own == id).map(|(_, tags)| tags)
    }

    /// The ids and tags of all records.
    pub(crate) fn all_tags(&self) -> impl Iterator<Item = (&str, &ResourceTags)> {
        let vpcs = self.vpcs.iter().map(|it| (it.id.as_str(), &it.tags));
        let subnets = self.subnets.iter().flat_map(|it| {
            let reserved = it.reservations.iter().map(|own| (own.id.as_str(), &own.tags));
            std::iter::once((it.id.as_str(), &it.tags)).chain(reserved)
        });
        let gateways = self.gateways.iter().map(|it| (it.id.as_str(), &it.tags));
        let tables = self.tables.iter().map(|it| (it.id.as_str(), &it.tags));
        let groups = self.groups.iter().flat_map(|group| {
            let rules = group.rules.iter().map(|rule| (rule.id.as_str(), &rule.tags));
            std::iter::once((group.id.as_str(), &group.tags)).chain(rules)
        });
        vpcs.chain(subnets).chain(gateways).chain(tables).chain(groups)
    }
}

/// The ids of a VPC and of the resources that are created with it.
#[derive(Clone, Debug)]
pub(crate) struct VpcParts {
    pub(crate) vpc: String,
    pub(crate) group: String,
    /// Ids of the default group's rules: all may go out, and its instances may reach each other.
    pub(crate) rules: [String; 2],
    pub(crate) table: String,
    pub(crate) association: String,
}

impl RegionNetwork {
    /// Adds a VPC of an account (`owner`, its number) with its main route table and its default security group.
    pub(crate) fn add_vpc(&mut self, parts: VpcParts, vpc: VpcRecord, owner: String) {
        let [out, inwards] = parts.rules;
        let rules =
            vec![GroupRule::all_out(out), GroupRule::all_of_group(inwards, &parts.group, owner)];
        let group = GroupRecord {
            id: parts.group,
            vpc: parts.vpc.clone(),
            name: "default".to_owned(),
            description: "default VPC security group".to_owned(),
            rules,
            tags: Vec::new(),
        };
        let table = RouteTable {
            id: parts.table,
            association: parts.association,
            vpc: parts.vpc,
            routes: Vec::new(),
            tags: Vec::new(),
        };
        self.vpcs.push(vpc);
        self.groups.push(group);
        self.tables.push(table);
    }

    /// Adds the default subnet of a zone: the first free block with a prefix of 20 bits in the default VPC.
    pub(crate) fn add_default_subnet(&mut self, id: String, zone: &str) -> Option<&SubnetRecord> {
        let vpc = self.default_vpc()?;
        let is_free = |block: &IpBlock| {
            let mut own = self.subnets.iter().filter(|subnet| subnet.vpc == vpc.id);
            own.all(|subnet| !subnet.block.overlaps(*block))
        };
        let block = (0..16).filter_map(|number| vpc.block.part(number, 20)).find(is_free)?;
        let vpc = vpc.id.clone();
        self.subnets.push(SubnetRecord {
            id,
            vpc,
            zone: zone.to_owned(),
            block,
            is_default: true,
            maps_public_ip: true,
            assigns_ipv6: false,
            v6_block: None,
            named_records: (false, false),
            reservations: Vec::new(),
            taken: BTreeSet::new(),
            next_place: 4,
            tags: Vec::new(),
        });
        self.subnets.last()
    }
}

impl SubnetRecord {
    /// Number of further instances that can have an address in the subnet.
    pub(crate) fn free_addresses(&self) -> usize {
        (self.block.usable() as usize).saturating_sub(self.taken.len())
    }

    /// Number of further instances that can have an address without naming it: reserved addresses are left out.
    pub(crate) fn assignable_addresses(&self) -> usize {
        if self.reservations.is_empty() {
            return self.free_addresses();
        }
        (4..self.block.size().saturating_sub(1)).filter(|place| self.is_assignable(*place)).count()
    }

    /// Whether an instance that names no address can get the address at this place of the block.
    fn is_assignable(&self, place: u32) -> bool {
        let mut reserved = self.reservations.iter().filter_map(|own| match own.block {
            ReservedBlock::Ipv4(block) => Some(block),
            ReservedBlock::Ipv6(_) => None,
        });
        let address = self.block.address(place);
        !self.taken.contains(&place) && reserved.all(|block| block.place_of(address).is_none())
    }

    /// Whether an instance can have the wanted address: it is free, and not one of the five that EC2 keeps.
    pub(crate) fn has_free(&self, wanted: Ipv4Addr) -> bool {
        let last = self.block.size().saturating_sub(1);
        let place = self.block.place_of(wanted);
        place.is_some_and(|place| (4..last).contains(&place) && !self.taken.contains(&place))
    }

    /// Takes the wanted address, or the next free one if none is wanted; `None` if the wanted address or every address
    /// is taken.
    pub(crate) fn take_address(&mut self, wanted: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let last = self.block.size().saturating_sub(1);
        let place = match wanted {
            Some(address) if self.has_free(address) => self.block.place_of(address)?,
            Some(_) => return None,
            None if self.free_addresses() == 0 => return None,
            None => {
                let free = |place: &u32| self.is_assignable(*place);
                (self.next_place..last).chain(4..self.next_place.min(last)).find(free)?
            }
        };
        self.taken.insert(place);
        if wanted.is_none() {
            self.next_place = place + 1;
        }
        Some(self.block.address(place))
    }
}
