//! Calls that change and list the rules of security groups.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::group_rules::{GroupRule, RulePeer, read_block, read_protocol};
use crate::instance_answers::tag_values;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network::region::not_found;
use crate::network_records::GroupRecord;
use crate::resource_tags::tags_for;

/// The most rules of a group in one direction: AWS's quota for new accounts.
const MAX_RULES: usize = 60;

impl ApiDesk {
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
            "SecurityGroupRuleIds",
            "TagSpecifications",
            "DryRun",
        ];
        refuse_others(action, input, &played)?;
        let group = self.named_group(scope, input)?.id.clone();
        let is_egress = action.ends_with("Egress");
        let mut permissions = input.list("IpPermissions").to_vec();
        if input.text("IpProtocol").is_some() {
            permissions.push(old_permission(input));
        }
        let tags = tags_for(input, "security-group-rule");
        let mut rules = Vec::new();
        for permission in &permissions {
            for (peer, description) in self.peers_of(scope, permission)? {
                let (protocol, ports) = read_protocol(permission)?;
                let (id, tags) = (String::new(), tags.clone());
                rules.push(GroupRule { id, is_egress, protocol, ports, peer, description, tags });
            }
        }
        let owner = account_number(&scope.account);
        let wire = |rule: &GroupRule| rule.to_wire(&group, &owner, &scope.region);
        let answer = WireValue::structure().with("Return", true);
        if action.starts_with("Revoke") {
            let ids = input.texts("SecurityGroupRuleIds");
            let gone = self.revoke(scope, &group, &rules, (&ids, is_egress))?;
            let gone = WireValue::list_of(gone.iter().map(|rule| rule.revoked_to_wire(&group)));
            let member = "RevokedSecurityGroupRules";
            return Ok(PendingAnswer::Ready(answer.with(member, gone)));
        }
        self.check_new(scope, &group, &rules)?;
        for rule in &mut rules {
            rule.id = self.new_id("sgr");
        }
        let written = WireValue::list_of(rules.iter().map(wire));
        let groups = self.network_mut(scope).groups.iter_mut();
        for own in groups.filter(|own| own.id == group) {
            own.rules.append(&mut rules);
        }
        Ok(PendingAnswer::Ready(answer.with("SecurityGroupRules", written)))
    }

    /// The sources or destinations that a permission allows, each with its description.
    fn peers_of(
        &self,
        scope: &CallScope,
        permission: &WireValue,
    ) -> Result<Vec<(RulePeer, Option<String>)>, ApiError> {
        let mut peers = Vec::new();
        let about = |of: &WireValue| of.text("Description").map(str::to_owned);
        for range in permission.list("IpRanges") {
            let block = read_block(range.text("CidrIp").unwrap_or_default(), false)?;
            peers.push((RulePeer::Ipv4(block), about(range)));
        }
        for range in permission.list("Ipv6Ranges") {
            let block = read_block(range.text("CidrIpv6").unwrap_or_default(), true)?;
            peers.push((RulePeer::Ipv6(block), about(range)));
        }
        for list in permission.list("PrefixListIds") {
            let id = list.text("PrefixListId").unwrap_or_default();
            peers.push((RulePeer::PrefixList(id.to_owned()), about(list)));
        }
        for pair in permission.list("UserIdGroupPairs") {
            let own = account_number(&scope.account);
            let owner = pair.text("UserId").unwrap_or(&own);
            let id = match (pair.text("GroupId"), pair.text("GroupName")) {
                // The groups of others are not known here.
                (Some(id), _) if owner != own => id.to_owned(),
                _ => self.named_group(scope, pair)?.id.clone(),
            };
            peers.push((RulePeer::Group { id, owner: owner.to_owned() }, about(pair)));
        }
        if peers.is_empty() {
            let text = "The request must contain the parameter IpRanges, Ipv6Ranges, PrefixListIds or UserIdGroupPairs";
            return Err(ApiError::new("MissingParameter", text));
        }
        Ok(peers)
    }

    /// Checks the rules that are to be added.
    fn check_new(&self, scope: &CallScope, group: &str, new: &[GroupRule]) -> Result<(), ApiError> {
        let Some(group) = self.network(scope).group(group) else { return Ok(()) };
        for (place, rule) in new.iter().enumerate() {
            let mut before = group.rules.iter().chain(new.iter().take(place));
            let alike = group.rules.iter().filter(|other| other.is_egress == rule.is_egress);
            if alike.count() + place >= MAX_RULES {
                let text = "The maximum number of rules per security group has been reached.";
                return Err(ApiError::new("RulesPerSecurityGroupLimitExceeded", text));
            }
            if before.any(|other| other.allows_like(rule)) {
                let text = format!("the specified rule \"{}\" already exists", rule.about());
                return Err(ApiError::new("InvalidPermission.Duplicate", text));
            }
        }
        Ok(())
    }

    /// Removes rules from a group: the rules that allow the same as the given ones, and the rules with the given ids.
    fn revoke(
        &mut self,
        scope: &CallScope,
        group: &str,
        rules: &[GroupRule],
        (ids, is_egress): (&[&str], bool),
    ) -> Result<Vec<GroupRule>, ApiError> {
        let groups = &mut self.network_mut(scope).groups;
        let found = groups.iter_mut().find(|own| own.id == group);
        let of = found.ok_or_else(|| group_not_found(group))?;
        let is_known =
            |id: &&&str| of.rules.iter().any(|rule| rule.id == **id && rule.is_egress == is_egress);
        if let Some(id) = ids.iter().find(|id| !is_known(id)) {
            return Err(rule_not_found(id));
        }
        let is_there = |rule: &&GroupRule| of.rules.iter().any(|own| own.allows_like(rule));
        if rules.iter().any(|rule| !is_there(&rule)) {
            let text = "The specified rule does not exist in this security group.";
            return Err(ApiError::new("InvalidPermission.NotFound", text));
        }
        let goes = |rule: &GroupRule| {
            ids.contains(&rule.id.as_str()) || rules.iter().any(|gone| gone.allows_like(rule))
        };
        let (gone, kept) = of.rules.drain(..).partition(goes);
        of.rules = kept;
        Ok(gone)
    }

    /// Changes rules, which the call names by their ids.
    pub(crate) fn modify_rules(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["GroupId", "SecurityGroupRules", "DryRun"];
        refuse_others("ModifySecurityGroupRules", input, &played)?;
        let group = self.named_group(scope, input)?;
        let (id, mut rules) = (group.id.clone(), group.rules.clone());
        for change in input.list("SecurityGroupRules") {
            let named = change.text("SecurityGroupRuleId").unwrap_or_default();
            let rule = rules.iter_mut().find(|rule| rule.id == named);
            let rule = rule.ok_or_else(|| rule_not_found(named))?;
            let none = WireValue::structure();
            let new = change.member("SecurityGroupRule").unwrap_or(&none);
            (rule.protocol, rule.ports) = read_protocol(new)?;
            rule.peer = self.one_peer(scope, new)?;
            rule.description = new.text("Description").map(str::to_owned);
        }
        for own in self.network_mut(scope).groups.iter_mut().filter(|own| own.id == id) {
            own.rules.clone_from(&rules);
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)))
    }

    /// The source or destination that a changed rule allows.
    fn one_peer(&self, scope: &CallScope, new: &WireValue) -> Result<RulePeer, ApiError> {
        let said = |name: &str| new.text(name).filter(|text| !text.is_empty());
        let (v4, v6) = (said("CidrIpv4"), said("CidrIpv6"));
        let (list, group) = (said("PrefixListId"), said("ReferencedGroupId"));
        match (v4, v6, list, group) {
            (Some(block), None, None, None) => Ok(RulePeer::Ipv4(read_block(block, false)?)),
            (None, Some(block), None, None) => Ok(RulePeer::Ipv6(read_block(block, true)?)),
            (None, None, Some(list), None) => Ok(RulePeer::PrefixList(list.to_owned())),
            (None, None, None, Some(id)) => {
                let id =
                    self.network(scope).group(id).ok_or_else(|| group_not_found(id))?.id.clone();
                Ok(RulePeer::Group { id, owner: account_number(&scope.account) })
            }
            (None, None, None, None) => {
                let text = "The request must contain exactly one of: cidrIp, cidrIpv6, prefixListId, or referencedGroupId";
                Err(ApiError::new("MissingParameter", text))
            }
            _ => {
                let text = "Only one of cidrIp, cidrIpv6, prefixListId, or referencedGroupId can be specified";
                Err(ApiError::new("InvalidParameterCombination", text))
            }
        }
    }

    /// Replaces the descriptions of rules.
    pub(crate) fn update_rule_descriptions(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played =
            ["GroupId", "GroupName", "IpPermissions", "SecurityGroupRuleDescriptions", "DryRun"];
        refuse_others(action, input, &played)?;
        let group = self.named_group(scope, input)?;
        let (group, mut rules) = (group.id.clone(), group.rules.clone());
        let is_egress = action.ends_with("Egress");
        let mut wanted = Vec::new();
        for permission in input.list("IpPermissions") {
            let (protocol, ports) = read_protocol(permission)?;
            for (peer, description) in self.peers_of(scope, permission)? {
                let (id, protocol, tags) = (String::new(), protocol.clone(), Vec::new());
                wanted.push(GroupRule { id, is_egress, protocol, ports, peer, description, tags });
            }
        }
        for new in &wanted {
            let rule = rules.iter_mut().find(|rule| rule.allows_like(new));
            let rule = rule.ok_or_else(|| {
                let text = "The specified rule does not exist in this security group.";
                ApiError::new("InvalidPermission.NotFound", text)
            })?;
            rule.description.clone_from(&new.description);
        }
        for new in input.list("SecurityGroupRuleDescriptions") {
            let id = new.text("SecurityGroupRuleId").unwrap_or_default();
            let rule = rules.iter_mut().find(|rule| rule.id == id);
            let rule = rule.ok_or_else(|| rule_not_found(id))?;
            rule.description = new.text("Description").map(str::to_owned);
        }
        for own in self.network_mut(scope).groups.iter_mut().filter(|own| own.id == group) {
            own.rules.clone_from(&rules);
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)))
    }

    pub(crate) fn describe_rules(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["SecurityGroupRuleIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeSecurityGroupRules", input, &played)?;
        let ids = input.texts("SecurityGroupRuleIds");
        let groups = &self.network(scope).groups;
        check_group_ids(input)?;
        let all = groups.iter().flat_map(|of| of.rules.iter().map(move |rule| (of, rule)));
        let all: Vec<(&GroupRecord, &GroupRule)> = all.collect();
        if let Some(id) = ids.iter().find(|id| all.iter().all(|(_, rule)| rule.id != **id)) {
            return Err(rule_not_found(id));
        }
        let is_named = |id: &str| ids.is_empty() || ids.contains(&id);
        let all = all.into_iter().filter(|(_, rule)| is_named(&rule.id)).collect();
        let values = |(group, rule): &(&GroupRecord, &GroupRule), name: &str| match name {
            "group-id" => Some(vec![group.id.clone()]),
            "security-group-rule-id" => Some(vec![rule.id.clone()]),
            _ => tag_values(&rule.tags, name),
        };
        let known = ["group-id", "security-group-rule-id", "tag-key", "tag-value"];
        let all = filter_by(all, input, values, &known)?;
        let (page, next) = take_page(all, input, (5, 1_000))?;
        let owner = account_number(&scope.account);
        let written =
            page.into_iter().map(|(group, rule)| rule.to_wire(&group.id, &owner, &scope.region));
        Ok(WireValue::structure()
            .with("SecurityGroupRules", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}

pub(super) fn group_not_found(id: &str) -> ApiError {
    not_found("InvalidGroup.NotFound", "security group", id)
}

/// Fails for a filter on groups whose value is not the id of a group.
///
/// # Errors
///
/// `InvalidGroupId.Malformed`.
fn check_group_ids(input: &WireValue) -> Result<(), ApiError> {
    let of_group = |filter: &&WireValue| filter.text("Name") == Some("group-id");
    let mut values =
        input.list("Filters").iter().filter(of_group).flat_map(|it| it.texts("Values"));
    match values.find(|id| !id.starts_with("sg-")) {
        Some(id) => {
            let text = format!("The security group ID '{id}' is malformed");
            Err(ApiError::new("InvalidGroupId.Malformed", text))
        }
        None => Ok(()),
    }
}

fn rule_not_found(id: &str) -> ApiError {
    not_found("InvalidSecurityGroupRuleId.NotFound", "security group rule ID", id)
}

/// The permission of a call that gives a single rule by separate parameters.
fn old_permission(input: &WireValue) -> WireValue {
    let range = input.text("CidrIp").map(|block| WireValue::structure().with("CidrIp", block));
    WireValue::structure()
        .with("IpProtocol", input.text("IpProtocol").unwrap_or_default())
        .with_some("FromPort", input.integer("FromPort"))
        .with_some("ToPort", input.integer("ToPort"))
        .with("IpRanges", WireValue::list_of(range))
}
