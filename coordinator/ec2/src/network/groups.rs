//! Security groups, and which of them an instance has.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::Ec2Instance;
use crate::group_rules::{GroupRule, RulePeer, permissions_to_wire};
use crate::instance_answers::tag_values;
use crate::launch_spec::LaunchSpec;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network::region::not_found;
use crate::network::rule_calls::group_not_found;
use crate::network_records::GroupRecord;
use crate::resource_tags::{tags_for, tags_to_wire};

const FILTERS: [&str; 19] = [
    "group-id",
    "group-name",
    "vpc-id",
    "description",
    "owner-id",
    "ip-permission.cidr",
    "ip-permission.from-port",
    "ip-permission.to-port",
    "ip-permission.protocol",
    "ip-permission.group-id",
    "ip-permission.group-name",
    "egress.ip-permission.cidr",
    "egress.ip-permission.from-port",
    "egress.ip-permission.to-port",
    "egress.ip-permission.protocol",
    "egress.ip-permission.group-id",
    "egress.ip-permission.group-name",
    "tag-key",
    "tag-value",
];

impl GroupRecord {
    fn filter_values(&self, owner: &str, name: &str) -> Option<Vec<String>> {
        let one = |value: &str| Some(vec![value.to_owned()]);
        let (is_egress, of_rule) = match name.strip_prefix("egress.") {
            Some(rest) => (true, rest.strip_prefix("ip-permission.")),
            None => (false, name.strip_prefix("ip-permission.")),
        };
        if let Some(of) = of_rule {
            let rules = self.rules.iter().filter(|rule| rule.is_egress == is_egress);
            return Some(rules.filter_map(|rule| rule_value(rule, of)).collect());
        }
        match name {
            "group-id" => one(&self.id),
            "group-name" => one(&self.name),
            "vpc-id" => one(&self.vpc),
            "description" => one(&self.description),
            "owner-id" => one(owner),
            _ => tag_values(&self.tags, name),
        }
    }
}

/// The value of a rule for a filter; `None` for one about the names of groups, too, as rules in a VPC name groups by their ids.
fn rule_value(rule: &GroupRule, name: &str) -> Option<String> {
    match (name, &rule.peer) {
        ("cidr", RulePeer::Ipv4(block)) => Some(block.clone()),
        ("group-id", RulePeer::Group { id, .. }) => Some(id.clone()),
        ("from-port", _) => rule.ports.map(|(from, _)| from.to_string()),
        ("to-port", _) => rule.ports.map(|(_, to)| to.to_string()),
        ("protocol", _) => Some(rule.protocol.clone()),
        _ => None,
    }
}

impl ApiDesk {
    /// The security groups of an instance: id and name of each.
    pub(crate) fn groups_of<'a>(&'a self, instance: &'a Ec2Instance) -> Vec<(&'a str, &'a str)> {
        let vpc = instance.seat.as_ref().map(|seat| seat.vpc.as_str());
        self.groups_of_spec(&instance.scope, &instance.spec, vpc)
    }

    /// The security groups for a launch into a VPC, or into the default VPC: id and name of each.
    pub(crate) fn groups_of_spec<'a>(
        &'a self,
        scope: &CallScope,
        spec: &'a LaunchSpec,
        vpc: Option<&str>,
    ) -> Vec<(&'a str, &'a str)> {
        let network = self.network(scope);
        let of_default = || network.default_vpc().map(|vpc| vpc.id.as_str());
        let Some(vpc) = vpc.or_else(of_default) else { return Vec::new() };
        let mut found = Vec::new();
        if spec.groups.is_empty() && spec.group_names.is_empty() {
            found.extend(network.default_group(vpc));
        }
        found.extend(spec.groups.iter().filter_map(|id| network.group(id)));
        found.extend(spec.group_names.iter().filter_map(|name| {
            network.groups.iter().find(|group| group.vpc == vpc && group.name == *name)
        }));
        found.into_iter().map(|group| (group.id.as_str(), group.name.as_str())).collect()
    }

    /// Checks that a caller has the key pair, the groups and the network that a launch names, and its block devices.
    ///
    /// # Errors
    ///
    /// `InvalidKeyPair.NotFound`, `InvalidSubnetID.NotFound`, `InvalidGroup.NotFound`; `VPCIdNotSpecified` if no subnet
    /// is named and there is no default VPC; the errors of the block devices.
    pub(crate) fn check_names(&self, scope: &CallScope, spec: &LaunchSpec) -> Result<(), ApiError> {
        if let Some(key) = &spec.key
            && !self.key_pairs.contains_key(&(scope.clone(), key.clone()))
        {
            return Err(not_found("InvalidKeyPair.NotFound", "key pair", key));
        }
        let network = self.network(scope);
        let vpc = match &spec.subnet {
            Some(id) => {
                let none = || not_found("InvalidSubnetID.NotFound", "subnet ID", id);
                Some(network.subnet(id).ok_or_else(none)?.vpc.as_str())
            }
            None => network.default_vpc().map(|vpc| vpc.id.as_str()),
        };
        let Some(vpc) = vpc else {
            let text = "No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC.";
            return Err(ApiError::new("VPCIdNotSpecified", text));
        };
        self.check_groups(scope, vpc, spec)?;
        self.check_devices(scope, spec)
    }

    /// Checks that the groups that a launch or a change names are groups of a VPC.
    ///
    /// # Errors
    ///
    /// `InvalidGroup.NotFound`.
    pub(crate) fn check_groups(
        &self,
        scope: &CallScope,
        vpc: &str,
        spec: &LaunchSpec,
    ) -> Result<(), ApiError> {
        let network = self.network(scope);
        let is_in = |group: &&GroupRecord| group.vpc == vpc;
        if let Some(id) = spec.groups.iter().find(|id| network.group(id).filter(is_in).is_none()) {
            return Err(group_not_found(id));
        }
        let own = || network.groups.iter().filter(is_in);
        let missing = spec.group_names.iter().find(|name| own().all(|group| group.name != **name));
        missing.map_or(Ok(()), |name| Err(group_not_found(name)))
    }

    pub(crate) fn describe_groups(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["GroupIds", "GroupNames", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeSecurityGroups", input, &played)?;
        let (ids, names) = (input.texts("GroupIds"), input.texts("GroupNames"));
        let network = self.network(scope);
        let mut all: Vec<&GroupRecord> = network.groups.iter().collect();
        let missing = ids.iter().find(|id| network.group(id).is_none());
        let misnamed = names.iter().find(|name| all.iter().all(|group| group.name != **name));
        if let Some(id) = missing.or(misnamed) {
            return Err(group_not_found(id));
        }
        all.retain(|group| {
            (ids.is_empty() || ids.contains(&group.id.as_str()))
                && (names.is_empty() || names.contains(&group.name.as_str()))
        });
        let owner = account_number(&scope.account);
        let values = |group: &&GroupRecord, name: &str| group.filter_values(&owner, name);
        let found = filter_by(all, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|group| {
            let rules = |is_egress| {
                permissions_to_wire(group.rules.iter().filter(move |it| it.is_egress == is_egress))
            };
            WireValue::structure()
                .with("GroupId", group.id.as_str())
                .with("SecurityGroupArn", group_arn(scope, &group.id))
                .with("GroupName", group.name.as_str())
                .with("Description", group.description.as_str())
                .with("VpcId", group.vpc.as_str())
                .with("OwnerId", owner.as_str())
                .with("IpPermissions", rules(false))
                .with("IpPermissionsEgress", rules(true))
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
        let said = |member: &str| {
            let text = input.text(member).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| {
                let text = format!("The request must contain the parameter {member}");
                ApiError::new("MissingParameter", text)
            })
        };
        let (name, description) = (said("GroupName")?, said("Description")?);
        let network = self.network(scope);
        let vpc = match input.text("VpcId") {
            Some(id) => network.vpc(id),
            None => network.default_vpc(),
        };
        let none = || match input.text("VpcId") {
            Some(id) => not_found("InvalidVpcID.NotFound", "vpc ID", id),
            None => ApiError::new("VPCIdNotSpecified", "No default VPC for this user"),
        };
        let vpc = vpc.ok_or_else(none)?.id.clone();
        if name.starts_with("sg-") || name == "default" {
            let text = format!("Invalid value '{name}' for groupName: it is reserved.");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        if network.groups.iter().any(|group| group.vpc == vpc && group.name == name) {
            let text = format!("The security group '{name}' already exists for VPC '{vpc}'");
            return Err(ApiError::new("InvalidGroup.Duplicate", text));
        }
        let (id, rule) = (self.new_id("sg"), self.new_id("sgr"));
        let group = GroupRecord {
            id: id.clone(),
            vpc,
            name,
            description,
            rules: vec![GroupRule::all_out(rule)],
            tags: tags_for(input, "security-group"),
        };
        let answer = WireValue::structure()
            .with("SecurityGroupArn", group_arn(scope, &id))
            .with("GroupId", id)
            .with("Tags", tags_to_wire(&group.tags));
        self.network_mut(scope).groups.push(group);
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn delete_group(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteSecurityGroup", input, &["GroupId", "GroupName", "DryRun"])?;
        let group = self.named_group(scope, input)?;
        let id = group.id.clone();
        if group.name == "default" {
            let text = format!(
                "the specified group: \"{id}\" name: \"default\" cannot be deleted by a user"
            );
            return Err(ApiError::new("CannotDelete", text));
        }
        let uses = |it: &Ec2Instance| {
            it.is_alive() && self.groups_of(it).iter().any(|(own, _)| *own == id)
        };
        let is_named = |group: &GroupRecord| {
            let names = |rule: &GroupRule| matches!(&rule.peer, RulePeer::Group { id: own, .. } if *own == id);
            group.id != id && group.rules.iter().any(names)
        };
        if self.instances_of(scope).any(uses) || self.network(scope).groups.iter().any(is_named) {
            let text = format!("resource {id} has a dependent object");
            return Err(ApiError::new("DependencyViolation", text));
        }
        self.network_mut(scope).groups.retain(|group| group.id != id);
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true).with("GroupId", id)))
    }

    /// The security group that a call names by its id, or by its name in the default VPC.
    pub(super) fn named_group(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<&GroupRecord, ApiError> {
        let (id, name) = (input.text("GroupId"), input.text("GroupName"));
        let network = self.network(scope);
        let by_name = |name: &str| {
            let vpc = network.default_vpc()?;
            network.groups.iter().find(|group| group.vpc == vpc.id && group.name == name)
        };
        let found = match (id, name) {
            (Some(id), _) => network.group(id),
            (None, Some(name)) => by_name(name),
            (None, None) => {
                let text = "The request must contain the parameter GroupName or GroupId";
                return Err(ApiError::new("MissingParameter", text));
            }
        };
        found.ok_or_else(|| group_not_found(id.or(name).unwrap_or_default()))
    }
}

fn group_arn(scope: &CallScope, id: &str) -> String {
    let owner = account_number(&scope.account);
    format!("arn:aws:ec2:{}:{owner}:security-group/{id}", scope.region)
}
