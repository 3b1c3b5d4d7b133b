//! Subnets.

use std::collections::BTreeSet;

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::catalogue_answers::zone_id;
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::instance_answers::tag_values;
use crate::ip_block::{IpBlock, Ipv6Block};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network::region::not_found;
use crate::network_records::{SubnetRecord, VpcRecord};
use crate::resource_tags::{tags_for, tags_to_wire};

const FILTERS: [&str; 18] = [
    "subnet-id",
    "subnet-arn",
    "vpc-id",
    "availability-zone",
    "availabilityZone",
    "availability-zone-id",
    "availabilityZoneId",
    "available-ip-address-count",
    "cidr-block",
    "cidr",
    "cidrBlock",
    "default-for-az",
    "defaultForAz",
    "map-public-ip-on-launch",
    "state",
    "owner-id",
    "tag-key",
    "tag-value",
];

pub(super) fn subnet_not_found(id: &str) -> ApiError {
    not_found("InvalidSubnetID.NotFound", "subnet ID", id)
}

impl SubnetRecord {
    fn filter_values(&self, scope: &CallScope, name: &str) -> Option<Vec<String>> {
        let one = |value: String| Some(vec![value]);
        match name {
            "subnet-id" => one(self.id.clone()),
            "subnet-arn" => one(self.arn(scope)),
            "vpc-id" => one(self.vpc.clone()),
            "availability-zone" | "availabilityZone" => one(self.zone.clone()),
            "availability-zone-id" | "availabilityZoneId" => one(zone_id(&self.zone)),
            "available-ip-address-count" => one(self.free_addresses().to_string()),
            "cidr-block" | "cidr" | "cidrBlock" => one(self.block.to_string()),
            "default-for-az" | "defaultForAz" => one(self.is_default.to_string()),
            "map-public-ip-on-launch" => one(self.maps_public_ip.to_string()),
            "state" => one("available".to_owned()),
            "owner-id" => one(account_number(&scope.account)),
            _ => tag_values(&self.tags, name),
        }
    }

    fn arn(&self, scope: &CallScope) -> String {
        let owner = account_number(&scope.account);
        format!("arn:aws:ec2:{}:{owner}:subnet/{}", scope.region, self.id)
    }

    fn to_wire(&self, scope: &CallScope) -> WireValue {
        let free = i64::try_from(self.free_addresses()).unwrap_or(i64::MAX);
        let v6_block = self.v6_block.as_ref().map(|(id, block)| {
            WireValue::structure()
                .with("AssociationId", id.as_str())
                .with("Ipv6CidrBlock", block.to_string())
                .with("Ipv6CidrBlockState", WireValue::structure().with("State", "associated"))
        });
        let (has_a, has_aaaa) = self.named_records;
        let names = WireValue::structure()
            .with("HostnameType", "ip-name")
            .with("EnableResourceNameDnsARecord", has_a)
            .with("EnableResourceNameDnsAAAARecord", has_aaaa);
        WireValue::structure()
            .with("SubnetId", self.id.as_str())
            .with("SubnetArn", self.arn(scope))
            .with("State", "available")
            .with("VpcId", self.vpc.as_str())
            .with("CidrBlock", self.block.to_string())
            .with("AvailableIpAddressCount", free)
            .with("AvailabilityZone", self.zone.as_str())
            .with("AvailabilityZoneId", zone_id(&self.zone))
            .with("DefaultForAz", self.is_default)
            .with("MapPublicIpOnLaunch", self.maps_public_ip)
            .with("AssignIpv6AddressOnCreation", self.assigns_ipv6)
            .with("Ipv6Native", false)
            .with("Ipv6CidrBlockAssociationSet", WireValue::list_of(v6_block))
            .with("PrivateDnsNameOptionsOnLaunch", names)
            .with("OwnerId", account_number(&scope.account))
            .with("Tags", tags_to_wire(&self.tags))
    }
}

impl ApiDesk {
    pub(crate) fn create_subnet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "VpcId",
            "CidrBlock",
            "AvailabilityZone",
            "AvailabilityZoneId",
            "Ipv6CidrBlock",
            "Ipv6Native",
            "TagSpecifications",
            "DryRun",
        ];
        refuse_others("CreateSubnet", input, &played)?;
        refuse_v6_native(input)?;
        let id = input.text("VpcId").unwrap_or_default();
        let network = self.network(scope);
        let vpc = network.vpc(id);
        let vpc = vpc.ok_or_else(|| not_found("InvalidVpcID.NotFound", "vpc ID", id))?;
        let text = input.text("CidrBlock").unwrap_or_default();
        let block = IpBlock::read(text).ok_or_else(|| {
            let text = format!(
                "Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block."
            );
            ApiError::new("InvalidParameterValue", text)
        })?;
        let mut whole = vpc.more_blocks.iter().map(|(_, own)| *own).chain([vpc.block]);
        if !(16..=28).contains(&block.bits()) || !whole.any(|own| own.holds(block)) {
            let text = format!("The CIDR '{text}' is invalid.");
            return Err(ApiError::new("InvalidSubnet.Range", text));
        }
        let zone = self.zone_of_new_subnet(scope, input)?;
        let mut own = network.subnets.iter().filter(|subnet| subnet.vpc == id);
        if own.any(|subnet| subnet.block.overlaps(block)) {
            let text = format!("The CIDR '{text}' conflicts with another subnet");
            return Err(ApiError::new("InvalidSubnet.Conflict", text));
        }
        let v6_block = read_v6_block(input, vpc)?;
        let mut v6_blocks = network.subnets.iter().filter_map(|it| it.v6_block.as_ref());
        if let Some(block) = v6_block.filter(|block| v6_blocks.any(|(_, own)| own.overlaps(*block)))
        {
            let text = format!("The CIDR '{block}' conflicts with another subnet");
            return Err(ApiError::new("InvalidSubnet.Conflict", text));
        }
        let v6_block = v6_block.map(|block| (self.new_id("subnet-cidr-assoc"), block));
        let subnet = SubnetRecord {
            id: self.new_id("subnet"),
            vpc: id.to_owned(),
            zone,
            block,
            is_default: false,
            maps_public_ip: false,
            assigns_ipv6: false,
            v6_block,
            named_records: (false, false),
            reservations: Vec::new(),
            taken: BTreeSet::new(),
            next_place: 4,
            tags: tags_for(input, "subnet"),
        };
        let written = subnet.to_wire(scope);
        self.network_mut(scope).subnets.push(subnet);
        Ok(PendingAnswer::Ready(WireValue::structure().with("Subnet", written)))
    }

    /// The zone that a call names by its name or its id; the first zone if the call names none.
    fn zone_of_new_subnet(&self, scope: &CallScope, input: &WireValue) -> Result<String, ApiError> {
        let zones = self.market.zones(&scope.region);
        let (name, id) = (input.text("AvailabilityZone"), input.text("AvailabilityZoneId"));
        let found = match (name, id) {
            (Some(name), _) => zones.iter().find(|zone| *zone == name),
            (None, Some(id)) => zones.iter().find(|zone| zone_id(zone) == id),
            (None, None) => zones.first(),
        };
        found.cloned().ok_or_else(|| {
            let text = format!(
                "Value ({}) for parameter availabilityZone is invalid. Subnets can currently only be created in the \
                 following availability zones: {}.",
                name.or(id).unwrap_or_default(),
                zones.join(", ")
            );
            ApiError::new("InvalidParameterValue", text)
        })
    }

    pub(crate) fn create_default_subnet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("CreateDefaultSubnet", input, &["AvailabilityZone", "DryRun"])?;
        let zone = self.zone_of_new_subnet(scope, input)?;
        let network = self.network(scope);
        if network.default_vpc().is_none() {
            let text = "No default VPC exists for this account in this region.";
            return Err(ApiError::new("DefaultVpcDoesNotExist", text));
        }
        if let Some(subnet) = network.default_subnet(&zone) {
            let text = format!("'{}' is already the default subnet in {zone}.", subnet.id);
            let code = "DefaultSubnetAlreadyExistsInAvailabilityZone";
            return Err(ApiError::new(code, text));
        }
        let id = self.new_id("subnet");
        let added = self.network_mut(scope).add_default_subnet(id, &zone);
        let full = || ApiError::new("InvalidSubnet.Conflict", "The default VPC has no free block");
        let written = added.ok_or_else(full)?.to_wire(scope);
        Ok(PendingAnswer::Ready(WireValue::structure().with("Subnet", written)))
    }

    pub(crate) fn delete_subnet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteSubnet", input, &["SubnetId", "DryRun"])?;
        let id = input.text("SubnetId").unwrap_or_default();
        let network = self.network_mut(scope);
        let subnet = network.subnet(id).ok_or_else(|| subnet_not_found(id))?;
        if !subnet.taken.is_empty() {
            let text = format!("The subnet '{id}' has dependencies and cannot be deleted.");
            return Err(ApiError::new("DependencyViolation", text));
        }
        network.subnets.retain(|subnet| subnet.id != id);
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn modify_subnet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "SubnetId",
            "MapPublicIpOnLaunch",
            "AssignIpv6AddressOnCreation",
            "EnableResourceNameDnsARecordOnLaunch",
            "EnableResourceNameDnsAAAARecordOnLaunch",
        ];
        refuse_others("ModifySubnetAttribute", input, &played)?;
        let id = input.text("SubnetId").unwrap_or_default();
        let flag = |name: &str| input.member(name).and_then(|it| it.flag("Value"));
        let subnet = self.network_mut(scope).subnet_mut(id).ok_or_else(|| subnet_not_found(id))?;
        subnet.maps_public_ip = flag("MapPublicIpOnLaunch").unwrap_or(subnet.maps_public_ip);
        subnet.named_records = (
            flag("EnableResourceNameDnsARecordOnLaunch").unwrap_or(subnet.named_records.0),
            flag("EnableResourceNameDnsAAAARecordOnLaunch").unwrap_or(subnet.named_records.1),
        );
        subnet.assigns_ipv6 = flag("AssignIpv6AddressOnCreation").unwrap_or(subnet.assigns_ipv6);
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn describe_subnets(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["SubnetIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeSubnets", input, &played)?;
        let (named, network) = (input.texts("SubnetIds"), self.network(scope));
        if let Some(wrong) = named.iter().find(|id| network.subnet(id).is_none()) {
            return Err(subnet_not_found(wrong));
        }
        let is_named = |it: &&SubnetRecord| named.is_empty() || named.contains(&it.id.as_str());
        let found = network.subnets.iter().filter(is_named).collect();
        let values = |subnet: &&SubnetRecord, name: &str| subnet.filter_values(scope, name);
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|subnet| subnet.to_wire(scope));
        Ok(WireValue::structure()
            .with("Subnets", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}

/// Refuses a subnet without IPv4 addresses, in which no instance could be launched.
///
/// # Errors
///
/// EC2's error for a wrong combination of parameters; else `UnsupportedOperation`.
fn refuse_v6_native(input: &WireValue) -> Result<(), ApiError> {
    if input.flag("Ipv6Native") != Some(true) {
        return Ok(());
    }
    let has = |name: &str| input.text(name).is_some_and(|text| !text.is_empty());
    Err(match (has("Ipv6CidrBlock"), has("CidrBlock")) {
        (false, _) => {
            let text = "Either 'ipv6CidrBlock' or 'ipv6IpamPoolId' should be provided.";
            ApiError::new("MissingParameter", text)
        }
        (true, true) => {
            let text = "When specifying ipv4 parameters, cidrBlock or ipv4IpamPoolId, you cannot set ipv6Native to true.";
            ApiError::new("InvalidParameterCombination", text)
        }
        (true, false) => {
            let text = "Subnets without IPv4 addresses are not played here; leave Ipv6Native out";
            ApiError::new("UnsupportedOperation", text)
        }
    })
}

/// The block of IPv6 addresses that a call names for a subnet: 64 bits within a block of its VPC.
fn read_v6_block(input: &WireValue, vpc: &VpcRecord) -> Result<Option<Ipv6Block>, ApiError> {
    let Some(text) = input.text("Ipv6CidrBlock").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let block = Ipv6Block::read(text).ok_or_else(|| {
        let text = format!(
            "Value ({text}) for parameter ipv6CidrBlock is invalid. This is not a valid CIDR block."
        );
        ApiError::new("InvalidParameterValue", text)
    })?;
    if block.bits() != 64 || !vpc.v6_blocks.iter().any(|(_, own)| own.holds(block)) {
        return Err(ApiError::new("InvalidSubnet.Range", format!("The CIDR '{text}' is invalid.")));
    }
    Ok(Some(block))
}
