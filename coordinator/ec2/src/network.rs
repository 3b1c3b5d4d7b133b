//! Networks of an account: records without an effect. Each region has a default VPC with a subnet in each zone, a way out and a
//! default security group.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::desk_records::SecurityGroup;
use crate::ec2_instance::{Ec2Instance, tags_to_wire};
use crate::instance_answers::tag_values;
use crate::launch_spec::{LaunchSpec, tags_for};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::{account_number, default_id};

fn not_found(code: &str, what: &str, id: &str) -> ApiError {
    ApiError::new(code, format!("The {what} '{id}' does not exist"))
}

fn one(value: impl Into<String>) -> Option<Vec<String>> {
    Some(vec![value.into()])
}

impl ApiDesk {
    fn own_id(&self, prefix: &str, scope: &CallScope, of: &str) -> String {
        default_id(self.seed, prefix, &format!("{} {} {of}", scope.account, scope.region))
    }

    pub(crate) fn vpc_id(&self, scope: &CallScope) -> String {
        self.own_id("vpc", scope, "")
    }

    pub(crate) fn subnet_of_zone(&self, scope: &CallScope, zone: &str) -> String {
        self.own_id("subnet", scope, zone)
    }

    fn default_group_id(&self, scope: &CallScope) -> String {
        self.own_id("sg", scope, "default")
    }

    /// The zone of a subnet.
    ///
    /// # Errors
    ///
    /// `InvalidSubnetID.NotFound`.
    pub(crate) fn zone_of_subnet(&self, scope: &CallScope, id: &str) -> Result<String, ApiError> {
        let mut zones = self.market.zones(&scope.region).iter();
        let zone = zones.find(|zone| self.subnet_of_zone(scope, zone) == id);
        zone.cloned().ok_or_else(|| not_found("InvalidSubnetID.NotFound", "subnet ID", id))
    }

    /// All security groups of a caller by id, the default one among them.
    fn all_groups(&self, scope: &CallScope) -> Vec<(String, SecurityGroup)> {
        let own = self.groups.iter().filter(|((owner, _), _)| owner == scope);
        let mut all: Vec<(String, SecurityGroup)> =
            own.map(|((_, id), group)| (id.clone(), group.clone())).collect();
        let id = self.default_group_id(scope);
        if all.iter().all(|(other, _)| *other != id) {
            let (name, description) =
                ("default".to_owned(), "default VPC security group".to_owned());
            let group = SecurityGroup {
                name,
                description,
                egress: vec![all_traffic()],
                ..SecurityGroup::default()
            };
            all.insert(0, (id, group));
        }
        all
    }

    /// The groups of an instance: id and name of each.
    pub(crate) fn groups_of(&self, instance: &Ec2Instance) -> Vec<(String, String)> {
        let scope =
            CallScope { account: instance.account.clone(), region: instance.region.clone() };
        self.groups_of_spec(&scope, &instance.spec)
    }

    /// The groups of a launch: id and name of each.
    pub(crate) fn groups_of_spec(
        &self,
        scope: &CallScope,
        spec: &LaunchSpec,
    ) -> Vec<(String, String)> {
        if spec.groups.is_empty() && spec.group_names.is_empty() {
            return vec![(self.default_group_id(scope), "default".to_owned())];
        }
        let all = self.all_groups(scope).into_iter();
        all.filter(|(id, group)| spec.groups.contains(id) || spec.group_names.contains(&group.name))
            .map(|(id, group)| (id, group.name))
            .collect()
    }

    /// Checks that a caller has the key pair and the groups that a launch names.
    ///
    /// # Errors
    ///
    /// `InvalidKeyPair.NotFound`, `InvalidGroup.NotFound`.
    pub(crate) fn check_names(&self, scope: &CallScope, spec: &LaunchSpec) -> Result<(), ApiError> {
        if let Some(key) = &spec.key
            && !self.key_pairs.contains_key(&(scope.clone(), key.clone()))
        {
            return Err(not_found("InvalidKeyPair.NotFound", "key pair", key));
        }
        let all = self.all_groups(scope);
        let wrong = |id: &&String| all.iter().all(|(own, _)| own != *id);
        let misnamed = |name: &&String| all.iter().all(|(_, group)| group.name != **name);
        let missing =
            spec.groups.iter().find(wrong).or_else(|| spec.group_names.iter().find(misnamed));
        missing.map_or(Ok(()), |id| Err(not_found("InvalidGroup.NotFound", "security group", id)))
    }

    pub(crate) fn describe_vpcs(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others(
            "DescribeVpcs",
            input,
            &["VpcIds", "DryRun", "Filters", "NextToken", "MaxResults"],
        )?;
        let id = self.vpc_id(scope);
        if let Some(wrong) = input.texts("VpcIds").into_iter().find(|named| *named != id) {
            return Err(not_found("InvalidVpcID.NotFound", "vpc ID", wrong));
        }
        let tags = self.tags_of(scope, &id);
        let known = [
            "vpc-id",
            "cidr",
            "cidr-block-association.cidr-block",
            "is-default",
            "isDefault",
            "state",
            "owner-id",
            "tag-key",
            "tag-value",
        ];
        let values = |id: &String, name: &str| match name {
            "vpc-id" => one(id.as_str()),
            "cidr" | "cidr-block-association.cidr-block" => one("172.31.0.0/16"),
            "is-default" | "isDefault" => one("true"),
            "state" => one("available"),
            "owner-id" => one(account_number(&scope.account)),
            _ => tag_values(&tags, name),
        };
        let found = if self.market.zones(&scope.region).is_empty() { Vec::new() } else { vec![id] };
        let found = filter_by(found, input, values, &known)?;
        let written = found.into_iter().map(|id| {
            let block = WireValue::structure()
                .with("AssociationId", self.own_id("vpc-cidr-assoc", scope, ""))
                .with("CidrBlock", "172.31.0.0/16")
                .with("CidrBlockState", WireValue::structure().with("State", "associated"));
            WireValue::structure()
                .with("VpcId", id)
                .with("OwnerId", account_number(&scope.account))
                .with("State", "available")
                .with("CidrBlock", "172.31.0.0/16")
                .with("CidrBlockAssociationSet", vec![block])
                .with("DhcpOptionsId", self.own_id("dopt", scope, ""))
                .with("InstanceTenancy", "default")
                .with("IsDefault", true)
                .with("Tags", tags_to_wire(&tags))
        });
        Ok(WireValue::structure().with("Vpcs", WireValue::list_of(written)))
    }

    pub(crate) fn describe_subnets(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others(
            "DescribeSubnets",
            input,
            &["SubnetIds", "DryRun", "Filters", "NextToken", "MaxResults"],
        )?;
        let named = input.texts("SubnetIds");
        for id in &named {
            self.zone_of_subnet(scope, id)?;
        }
        let zones = self.market.zones(&scope.region).iter().enumerate();
        let subnets = zones.map(|(place, zone)| {
            (
                self.subnet_of_zone(scope, zone),
                zone.clone(),
                format!("172.31.{}.0/20", place * 16 % 256),
            )
        });
        let subnets = subnets.filter(|it| named.is_empty() || named.contains(&it.0.as_str()));
        let known = [
            "subnet-id",
            "vpc-id",
            "availability-zone",
            "availabilityZone",
            "cidr-block",
            "cidr",
            "cidrBlock",
            "default-for-az",
            "defaultForAz",
            "state",
            "owner-id",
            "map-public-ip-on-launch",
            "tag-key",
            "tag-value",
        ];
        let values = |it: &(String, String, String), name: &str| match name {
            "subnet-id" => one(it.0.as_str()),
            "vpc-id" => one(self.vpc_id(scope)),
            "availability-zone" | "availabilityZone" => one(it.1.as_str()),
            "cidr-block" | "cidr" | "cidrBlock" => one(it.2.as_str()),
            "default-for-az" | "defaultForAz" | "map-public-ip-on-launch" => one("true"),
            "state" => one("available"),
            "owner-id" => one(account_number(&scope.account)),
            _ => tag_values(&self.tags_of(scope, &it.0), name),
        };
        let found = filter_by(subnets.collect(), input, values, &known)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|(id, zone, block)| {
            let owner = account_number(&scope.account);
            let tags = tags_to_wire(&self.tags_of(scope, &id));
            WireValue::structure()
                .with("SubnetArn", format!("arn:aws:ec2:{}:{owner}:subnet/{id}", scope.region))
                .with("SubnetId", id)
                .with("State", "available")
                .with("VpcId", self.vpc_id(scope))
                .with("CidrBlock", block)
                .with("AvailableIpAddressCount", 4_091_i64)
                .with("AvailabilityZone", zone)
                .with("DefaultForAz", true)
                .with("MapPublicIpOnLaunch", true)
                .with("AssignIpv6AddressOnCreation", false)
                .with("OwnerId", owner)
                .with("Tags", tags)
        });
        Ok(WireValue::structure()
            .with("Subnets", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn describe_groups(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["GroupIds", "GroupNames", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeSecurityGroups", input, &played)?;
        let (ids, names) = (input.texts("GroupIds"), input.texts("GroupNames"));
        let mut all = self.all_groups(scope);
        let missing = ids.iter().find(|id| all.iter().all(|(own, _)| own != *id));
        let misnamed = names.iter().find(|name| all.iter().all(|(_, group)| group.name != **name));
        if let Some(id) = missing.or(misnamed) {
            return Err(not_found("InvalidGroup.NotFound", "security group", id));
        }
        all.retain(|(id, group)| {
            (ids.is_empty() || ids.contains(&id.as_str()))
                && (names.is_empty() || names.contains(&group.name.as_str()))
        });
        let known =
            ["group-id", "group-name", "vpc-id", "description", "owner-id", "tag-key", "tag-value"];
        let values = |(id, group): &(String, SecurityGroup), name: &str| match name {
            "group-id" => one(id.as_str()),
            "group-name" => one(group.name.as_str()),
            "vpc-id" => one(self.vpc_id(scope)),
            "description" => one(group.description.as_str()),
            "owner-id" => one(account_number(&scope.account)),
            _ => tag_values(&group.tags, name),
        };
        let found = filter_by(all, input, values, &known)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|(id, group)| {
            WireValue::structure()
                .with("GroupId", id)
                .with("GroupName", group.name)
                .with("Description", group.description)
                .with("VpcId", self.vpc_id(scope))
                .with("OwnerId", account_number(&scope.account))
                .with("IpPermissions", WireValue::List(group.ingress))
                .with("IpPermissionsEgress", WireValue::List(group.egress))
                .with("Tags", tags_to_wire(&group.tags))
        });
        Ok(WireValue::structure()
            .with("SecurityGroups", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn create_group(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["GroupName", "Description", "VpcId", "TagSpecifications", "DryRun"];
        refuse_others("CreateSecurityGroup", input, &played)?;
        let name = input.text("GroupName").unwrap_or_default().to_owned();
        if let Some(vpc) = input.text("VpcId").filter(|vpc| *vpc != self.vpc_id(scope)) {
            return Err(not_found("InvalidVpcID.NotFound", "vpc ID", vpc));
        }
        if self.all_groups(scope).iter().any(|(_, group)| group.name == name) {
            let text = format!("The security group '{name}' already exists");
            return Err(ApiError::new("InvalidGroup.Duplicate", text));
        }
        let id = self.new_id("sg");
        let group = SecurityGroup {
            name,
            description: input.text("Description").unwrap_or_default().to_owned(),
            ingress: Vec::new(),
            egress: vec![all_traffic()],
            tags: tags_for(input, "security-group"),
        };
        let answer = WireValue::structure()
            .with("GroupId", id.as_str())
            .with("Tags", tags_to_wire(&group.tags));
        self.groups.insert((scope.clone(), id), group);
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn delete_group(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteSecurityGroup", input, &["GroupId", "GroupName", "DryRun"])?;
        let id = self.named_group(scope, input)?;
        if id == self.default_group_id(scope) {
            let text = format!(
                "the specified group: \"{id}\" name: \"default\" cannot be deleted by a user"
            );
            return Err(ApiError::new("CannotDelete", text));
        }
        let uses = |it: &Ec2Instance| {
            it.is_alive() && self.groups_of(it).iter().any(|(own, _)| *own == id)
        };
        if self.instances_of(scope).any(uses) {
            let text = format!("resource {id} has a dependent object");
            return Err(ApiError::new("DependencyViolation", text));
        }
        self.groups.remove(&(scope.clone(), id.clone()));
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true).with("GroupId", id)))
    }

    fn named_group(&self, scope: &CallScope, input: &WireValue) -> Result<String, ApiError> {
        let (id, name) = (input.text("GroupId"), input.text("GroupName"));
        let found = self.all_groups(scope).into_iter().find(|(own, group)| {
            id.is_some_and(|id| id == own) || id.is_none() && name == Some(group.name.as_str())
        });
        let asked = id.or(name).unwrap_or_default();
        found
            .map(|(id, _)| id)
            .ok_or_else(|| not_found("InvalidGroup.NotFound", "security group", asked))
    }

    pub(crate) fn change_rules(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "GroupId",
            "GroupName",
            "IpPermissions",
            "IpProtocol",
            "FromPort",
            "ToPort",
            "CidrIp",
            "TagSpecifications",
            "DryRun",
        ];
        refuse_others(action, input, &played)?;
        let id = self.named_group(scope, input)?;
        let mut rules = input.list("IpPermissions").to_vec();
        if let Some(protocol) = input.text("IpProtocol") {
            let range =
                input.text("CidrIp").map(|block| WireValue::structure().with("CidrIp", block));
            rules.push(
                WireValue::structure()
                    .with("IpProtocol", protocol)
                    .with_some("FromPort", input.integer("FromPort"))
                    .with_some("ToPort", input.integer("ToPort"))
                    .with("IpRanges", WireValue::list_of(range)),
            );
        }
        let known = self.all_groups(scope).into_iter().find(|(own, _)| *own == id);
        let key = (scope.clone(), id);
        let group = self
            .groups
            .entry(key)
            .or_insert_with(|| known.map(|(_, group)| group).unwrap_or_default());
        let own = if action.ends_with("Egress") { &mut group.egress } else { &mut group.ingress };
        for rule in rules {
            let is_there = own.contains(&rule);
            if action.starts_with("Revoke") {
                own.retain(|other| *other != rule);
            } else if is_there {
                let text = "the specified rule already exists";
                return Err(ApiError::new("InvalidPermission.Duplicate", text));
            } else {
                own.push(rule);
            }
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)))
    }

    pub(crate) fn describe_route_tables(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others(
            "DescribeRouteTables",
            input,
            &["RouteTableIds", "DryRun", "Filters", "NextToken", "MaxResults"],
        )?;
        let (id, vpc) = (self.own_id("rtb", scope, ""), self.vpc_id(scope));
        let known = [
            "route-table-id",
            "vpc-id",
            "association.main",
            "association.subnet-id",
            "tag-key",
            "tag-value",
        ];
        let values = |id: &String, name: &str| match name {
            "route-table-id" => one(id.as_str()),
            "vpc-id" => one(vpc.as_str()),
            "association.main" => one("true"),
            // The main table has the subnets by being it, and not by association.
            "association.subnet-id" => Some(Vec::new()),
            _ => tag_values(&self.tags_of(scope, id), name),
        };
        let found = filter_by(vec![id], input, values, &known)?;
        let written = found.into_iter().map(|id| {
            let route = |block: &str, gateway: &str, origin: &str| {
                WireValue::structure()
                    .with("DestinationCidrBlock", block)
                    .with("GatewayId", gateway)
                    .with("Origin", origin)
                    .with("State", "active")
            };
            let association = WireValue::structure()
                .with("Main", true)
                .with("RouteTableAssociationId", self.own_id("rtbassoc", scope, ""))
                .with("RouteTableId", id.as_str())
                .with("AssociationState", WireValue::structure().with("State", "associated"));
            let routes = vec![
                route("172.31.0.0/16", "local", "CreateRouteTable"),
                route("0.0.0.0/0", &self.own_id("igw", scope, ""), "CreateRoute"),
            ];
            let tags = tags_to_wire(&self.tags_of(scope, &id));
            WireValue::structure()
                .with("RouteTableId", id)
                .with("VpcId", vpc.as_str())
                .with("OwnerId", account_number(&scope.account))
                .with("Associations", vec![association])
                .with("PropagatingVgws", WireValue::List(Vec::new()))
                .with("Routes", routes)
                .with("Tags", tags)
        });
        Ok(WireValue::structure().with("RouteTables", WireValue::list_of(written)))
    }

    pub(crate) fn describe_gateways(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["InternetGatewayIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeInternetGateways", input, &played)?;
        let (id, vpc) = (self.own_id("igw", scope, ""), self.vpc_id(scope));
        let known = [
            "internet-gateway-id",
            "attachment.vpc-id",
            "attachment.state",
            "owner-id",
            "tag-key",
            "tag-value",
        ];
        let values = |id: &String, name: &str| match name {
            "internet-gateway-id" => one(id.as_str()),
            "attachment.vpc-id" => one(vpc.as_str()),
            "attachment.state" => one("available"),
            "owner-id" => one(account_number(&scope.account)),
            _ => tag_values(&self.tags_of(scope, id), name),
        };
        let found = filter_by(vec![id], input, values, &known)?;
        let written = found.into_iter().map(|id| {
            let attachment =
                WireValue::structure().with("State", "available").with("VpcId", vpc.as_str());
            let tags = tags_to_wire(&self.tags_of(scope, &id));
            WireValue::structure()
                .with("InternetGatewayId", id)
                .with("OwnerId", account_number(&scope.account))
                .with("Attachments", vec![attachment])
                .with("Tags", tags)
        });
        Ok(WireValue::structure().with("InternetGateways", WireValue::list_of(written)))
    }

    /// The tags of a resource that is in no list of its own.
    pub(crate) fn tags_of(&self, scope: &CallScope, id: &str) -> Vec<(String, String)> {
        self.other_tags.get(&(scope.clone(), id.to_owned())).cloned().unwrap_or_default()
    }
}

fn all_traffic() -> WireValue {
    let everywhere = WireValue::structure().with("CidrIp", "0.0.0.0/0");
    WireValue::structure().with("IpProtocol", "-1").with("IpRanges", vec![everywhere])
}
