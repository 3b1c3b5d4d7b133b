//! VPCs.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::instance_answers::tag_values;
use crate::ip_block::{IpBlock, Ipv6Block};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::{account_number, default_id};
use crate::network::region::not_found;
use crate::network_records::{GatewayRecord, VpcParts, VpcRecord};
use crate::resource_tags::{tags_for, tags_to_wire};

const FILTERS: [&str; 14] = [
    "vpc-id",
    "cidr",
    "cidr-block-association.cidr-block",
    "cidr-block-association.state",
    "ipv6-cidr-block-association.ipv6-cidr-block",
    "ipv6-cidr-block-association.association-id",
    "ipv6-cidr-block-association.state",
    "dhcp-options-id",
    "is-default",
    "isDefault",
    "state",
    "owner-id",
    "tag-key",
    "tag-value",
];

/// Blocks of which a VPC has no address: every host has them to itself, or they are those of no host.
const NO_VPC: [&str; 4] = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"];

fn vpc_not_found(id: &str) -> ApiError {
    not_found("InvalidVpcID.NotFound", "vpc ID", id)
}

/// Parses the block of a VPC, whose prefix has 16 to 28 bits and whose addresses are those of hosts.
fn read_vpc_block(text: &str) -> Result<IpBlock, ApiError> {
    let block = IpBlock::read(text).ok_or_else(|| {
        let text = format!(
            "Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block."
        );
        ApiError::new("InvalidParameterValue", text)
    })?;
    let is_played = (16..=28).contains(&block.bits())
        && NO_VPC.iter().all(|no| !IpBlock::read(no).is_some_and(|no| no.overlaps(block)));
    if is_played {
        return Ok(block);
    }
    Err(ApiError::new("InvalidVpc.Range", format!("The CIDR '{text}' is invalid.")))
}

impl ApiDesk {
    /// New ids for a VPC and the resources that are created with it.
    fn new_vpc_parts(&mut self) -> VpcParts {
        VpcParts {
            vpc: self.new_id("vpc"),
            group: self.new_id("sg"),
            rules: [self.new_id("sgr"), self.new_id("sgr")],
            table: self.new_id("rtb"),
            association: self.new_id("rtbassoc"),
        }
    }

    pub(crate) fn create_vpc(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "CidrBlock",
            "InstanceTenancy",
            "TagSpecifications",
            "AmazonProvidedIpv6CidrBlock",
            "Ipv6CidrBlock",
            "DryRun",
        ];
        refuse_others("CreateVpc", input, &played)?;
        let block = read_vpc_block(input.text("CidrBlock").unwrap_or_default())?;
        read_v6_block(input)?;
        let parts = self.new_vpc_parts();
        let v6_block = self.new_v6_block(input)?;
        let vpc = VpcRecord {
            id: parts.vpc.clone(),
            block,
            more_blocks: Vec::new(),
            v6_blocks: v6_block.into_iter().collect(),
            is_default: false,
            tenancy: input.text("InstanceTenancy").unwrap_or("default").to_owned(),
            tags: tags_for(input, "vpc"),
        };
        let written = self.vpc_to_wire(scope, &vpc);
        self.network_mut(scope).add_vpc(parts, vpc, account_number(&scope.account));
        Ok(PendingAnswer::Ready(WireValue::structure().with("Vpc", written)))
    }

    pub(crate) fn create_default_vpc(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("CreateDefaultVpc", input, &["DryRun"])?;
        if let Some(vpc) = self.network(scope).default_vpc() {
            let text = format!(
                "A Default VPC already exists for this account in this region. (Its id is {}.)",
                vpc.id
            );
            return Err(ApiError::new("DefaultVpcAlreadyExists", text));
        }
        let (parts, gateway) = (self.new_vpc_parts(), self.new_id("igw"));
        let vpc = VpcRecord {
            id: parts.vpc.clone(),
            block: IpBlock::DEFAULT_VPC,
            more_blocks: Vec::new(),
            v6_blocks: Vec::new(),
            is_default: true,
            tenancy: "default".to_owned(),
            tags: Vec::new(),
        };
        let written = self.vpc_to_wire(scope, &vpc);
        let zones = self.market.zones(&scope.region).to_vec();
        let subnets: Vec<String> = zones.iter().map(|_| self.new_id("subnet")).collect();
        let network = self.network_mut(scope);
        let (of, table) = (parts.vpc.clone(), parts.table.clone());
        network.add_vpc(parts, vpc, account_number(&scope.account));
        for own in network.tables.iter_mut().filter(|own| own.id == table) {
            own.routes.push(("0.0.0.0/0".to_owned(), gateway.clone()));
        }
        network.gateways.push(GatewayRecord { id: gateway, vpc: Some(of), tags: Vec::new() });
        for (zone, id) in zones.iter().zip(subnets) {
            network.add_default_subnet(id, zone);
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("Vpc", written)))
    }

    pub(crate) fn delete_vpc(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteVpc", input, &["VpcId", "DryRun"])?;
        let id = input.text("VpcId").unwrap_or_default();
        let network = self.network_mut(scope);
        if network.vpc(id).is_none() {
            return Err(vpc_not_found(id));
        }
        let has_subnets = network.subnets.iter().any(|subnet| subnet.vpc == id);
        let has_gateway = network.gateways.iter().any(|own| own.vpc.as_deref() == Some(id));
        let is_default = network.vpc(id).is_some_and(|vpc| vpc.is_default);
        let has_groups =
            network.groups.iter().any(|group| group.vpc == id && group.name != "default");
        if has_subnets || has_groups || has_gateway && !is_default {
            let text = format!("The vpc '{id}' has dependencies and cannot be deleted.");
            return Err(ApiError::new("DependencyViolation", text));
        }
        network.vpcs.retain(|vpc| vpc.id != id);
        network.tables.retain(|table| table.vpc != id);
        network.groups.retain(|group| group.vpc != id);
        network.gateways.retain(|own| own.vpc.as_deref() != Some(id));
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn associate_vpc_block(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["CidrBlock", "VpcId", "AmazonProvidedIpv6CidrBlock", "Ipv6CidrBlock"];
        refuse_others("AssociateVpcCidrBlock", input, &played)?;
        let id = input.text("VpcId").unwrap_or_default();
        if read_v6_block(input)?.is_some() {
            return self.associate_v6_block(scope, id, input);
        }
        let text = input.text("CidrBlock").unwrap_or_default();
        let block = read_vpc_block(text)?;
        let vpc = self.network(scope).vpc(id).ok_or_else(|| vpc_not_found(id))?;
        let mut own = vpc.more_blocks.iter().map(|(_, own)| *own).chain([vpc.block]);
        if own.any(|own| own.overlaps(block)) {
            let text = format!("The CIDR '{text}' conflicts with another block of the vpc '{id}'");
            return Err(ApiError::new("InvalidVpc.Conflict", text));
        }
        let association = self.new_id("vpc-cidr-assoc");
        for vpc in self.network_mut(scope).vpcs.iter_mut().filter(|vpc| vpc.id == id) {
            vpc.more_blocks.push((association.clone(), block));
        }
        let answer = WireValue::structure()
            .with("VpcId", id)
            .with("CidrBlockAssociation", association_to_wire(&association, block));
        Ok(PendingAnswer::Ready(answer))
    }

    /// Adds a block of IPv6 addresses to a VPC.
    fn associate_v6_block(
        &mut self,
        scope: &CallScope,
        id: &str,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        self.network(scope).vpc(id).ok_or_else(|| vpc_not_found(id))?;
        let block = self.new_v6_block(input)?;
        for vpc in self.network_mut(scope).vpcs.iter_mut().filter(|vpc| vpc.id == id) {
            vpc.v6_blocks.extend(block.clone());
        }
        let written = block.map(|(association, block)| v6_association_to_wire(&association, block));
        let answer =
            WireValue::structure().with("VpcId", id).with_some("Ipv6CidrBlockAssociation", written);
        Ok(PendingAnswer::Ready(answer))
    }

    /// The block of IPv6 addresses that a call asks for, with the id of its association; `None`: it asks for none.
    fn new_v6_block(&mut self, input: &WireValue) -> Result<Option<(String, Ipv6Block)>, ApiError> {
        let Some(named) = read_v6_block(input)? else { return Ok(None) };
        let block = named.unwrap_or_else(|| Ipv6Block::provided(self.count_of("vpc-cidr-assoc")));
        Ok(Some((self.new_id("vpc-cidr-assoc"), block)))
    }

    pub(crate) fn describe_vpcs(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["VpcIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeVpcs", input, &played)?;
        let (named, network) = (input.texts("VpcIds"), self.network(scope));
        if let Some(wrong) = named.iter().find(|id| network.vpc(id).is_none()) {
            return Err(vpc_not_found(wrong));
        }
        let is_named = |vpc: &&VpcRecord| named.is_empty() || named.contains(&vpc.id.as_str());
        let found = network.vpcs.iter().filter(is_named).collect();
        let one = |value: &str| Some(vec![value.to_owned()]);
        let values = |vpc: &&VpcRecord, name: &str| match name {
            "vpc-id" => one(&vpc.id),
            "cidr" => one(&vpc.block.to_string()),
            "cidr-block-association.cidr-block" => {
                let more = vpc.more_blocks.iter().map(|(_, block)| block.to_string());
                Some(std::iter::once(vpc.block.to_string()).chain(more).collect())
            }
            "cidr-block-association.state" => one("associated"),
            "ipv6-cidr-block-association.ipv6-cidr-block" => {
                Some(vpc.v6_blocks.iter().map(|(_, block)| block.to_string()).collect())
            }
            "ipv6-cidr-block-association.association-id" => {
                Some(vpc.v6_blocks.iter().map(|(id, _)| id.clone()).collect())
            }
            "ipv6-cidr-block-association.state" => {
                Some(vpc.v6_blocks.iter().map(|_| "associated".to_owned()).collect())
            }
            "dhcp-options-id" => one(&self.dhcp_id(scope)),
            "is-default" | "isDefault" => one(&vpc.is_default.to_string()),
            "state" => one("available"),
            "owner-id" => one(&account_number(&scope.account)),
            _ => tag_values(&vpc.tags, name),
        };
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|vpc| self.vpc_to_wire(scope, vpc));
        Ok(WireValue::structure()
            .with("Vpcs", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    fn dhcp_id(&self, scope: &CallScope) -> String {
        default_id(self.seed, "dopt", &format!("{} {} ", scope.account, scope.region))
    }

    fn vpc_to_wire(&self, scope: &CallScope, vpc: &VpcRecord) -> WireValue {
        let first = format!("vpc-cidr-assoc-{}", vpc.id.trim_start_matches("vpc-"));
        let more = vpc.more_blocks.iter().map(|(id, block)| association_to_wire(id, *block));
        let blocks = std::iter::once(association_to_wire(&first, vpc.block)).chain(more);
        let v6_blocks = vpc.v6_blocks.iter().map(|(id, block)| v6_association_to_wire(id, *block));
        WireValue::structure()
            .with("VpcId", vpc.id.as_str())
            .with("OwnerId", account_number(&scope.account))
            .with("State", "available")
            .with("CidrBlock", vpc.block.to_string())
            .with("CidrBlockAssociationSet", WireValue::list_of(blocks))
            .with("Ipv6CidrBlockAssociationSet", WireValue::list_of(v6_blocks))
            .with("DhcpOptionsId", self.dhcp_id(scope))
            .with("InstanceTenancy", vpc.tenancy.as_str())
            .with("IsDefault", vpc.is_default)
            .with("Tags", tags_to_wire(&vpc.tags))
    }
}

/// Reads the block of IPv6 addresses that a call asks for. `Some(None)`: any block; `None`: the call asks for none.
///
/// # Errors
///
/// `InvalidParameterValue`.
fn read_v6_block(input: &WireValue) -> Result<Option<Option<Ipv6Block>>, ApiError> {
    match input.text("Ipv6CidrBlock").filter(|text| !text.is_empty()) {
        Some(text) => match Ipv6Block::read(text) {
            Some(block) => Ok(Some(Some(block))),
            None => {
                let text = format!(
                    "Value ({text}) for parameter ipv6CidrBlock is invalid. This is not a valid CIDR block."
                );
                Err(ApiError::new("InvalidParameterValue", text))
            }
        },
        None => Ok((input.flag("AmazonProvidedIpv6CidrBlock") == Some(true)).then_some(None)),
    }
}

fn v6_association_to_wire(id: &str, block: Ipv6Block) -> WireValue {
    WireValue::structure()
        .with("AssociationId", id)
        .with("Ipv6CidrBlock", block.to_string())
        .with("Ipv6CidrBlockState", WireValue::structure().with("State", "associated"))
}

fn association_to_wire(id: &str, block: IpBlock) -> WireValue {
    WireValue::structure()
        .with("AssociationId", id)
        .with("CidrBlock", block.to_string())
        .with("CidrBlockState", WireValue::structure().with("State", "associated"))
}
