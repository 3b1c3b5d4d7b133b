//! Calls of the API: the supported ones, the ones that change something, and the answers of the latter.

use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::{ApiCall, Decision};
use dormouse_units::Time;

use crate::absent_resources::{no_capacity_reservations, no_placement_groups};
use crate::call_checks::{check_client_token, client_token, open_page, seal_page};
use crate::call_json::{answer_digest, value_from_json, value_to_json};
use crate::cells::SHUTDOWN;
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::resource_tags::check_tags;

/// Names of the calls that change something; each such call is an event of the run.
pub(crate) const CHANGES: [&str; 60] = [
    "RunInstances",
    "TerminateInstances",
    "StopInstances",
    "StartInstances",
    "RebootInstances",
    "RequestSpotInstances",
    "CancelSpotInstanceRequests",
    "CreateTags",
    "DeleteTags",
    "CreateKeyPair",
    "ImportKeyPair",
    "DeleteKeyPair",
    "CreateSecurityGroup",
    "DeleteSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "AuthorizeSecurityGroupEgress",
    "RevokeSecurityGroupIngress",
    "RevokeSecurityGroupEgress",
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "ModifyLaunchTemplate",
    "DeleteLaunchTemplate",
    "CreateFleet",
    "ModifyFleet",
    "DeleteFleets",
    "RequestSpotFleet",
    "ModifySpotFleetRequest",
    "CancelSpotFleetRequests",
    "ModifyInstanceAttribute",
    "ModifyInstanceCreditSpecification",
    "CreateVpc",
    "CreateDefaultVpc",
    "DeleteVpc",
    "AssociateVpcCidrBlock",
    "CreateSubnet",
    "CreateDefaultSubnet",
    "DeleteSubnet",
    "ModifySubnetAttribute",
    "CreateInternetGateway",
    "AttachInternetGateway",
    "DetachInternetGateway",
    "DeleteInternetGateway",
    "CreateRoute",
    "ModifySecurityGroupRules",
    "UpdateSecurityGroupRuleDescriptionsIngress",
    "UpdateSecurityGroupRuleDescriptionsEgress",
    "DeleteLaunchTemplateVersions",
    "ModifyInstanceMetadataOptions",
    "CreateVolume",
    "DeleteVolume",
    "AttachVolume",
    "DetachVolume",
    "ModifyVolume",
    "CreateSnapshot",
    "CreateSnapshots",
    "CopySnapshot",
    "DeleteSnapshot",
    "ModifySnapshotAttribute",
    "CreateSubnetCidrReservation",
    "DeleteSubnetCidrReservation",
];

/// Whether a call may change something; false for a call that is not supported.
pub(crate) fn is_change(action: &str) -> bool {
    CHANGES.contains(&action)
}

/// The error for a call that is not supported.
fn not_played(action: &str) -> ApiError {
    ApiError::new("UnsupportedOperation", format!("{action} is not played here"))
}

/// Calls whose dry runs check first what the call names; other dry runs check only its tags and its client token.
pub(crate) const DRY_CHECKS: [&str; 7] = [
    "RunInstances",
    "TerminateInstances",
    "StopInstances",
    "StartInstances",
    "RebootInstances",
    "RequestSpotInstances",
    "CancelSpotInstanceRequests",
];

/// Whether a call asks only whether it would be allowed.
fn is_dry_run(input: &WireValue) -> bool {
    input.flag("DryRun") == Some(true)
}

/// Ends a dry run that has checked what the call names.
///
/// # Errors
///
/// `DryRunOperation` if the call is a dry run.
pub(crate) fn end_dry_run(input: &WireValue) -> Result<(), ApiError> {
    if is_dry_run(input) { Err(dry_run()) } else { Ok(()) }
}

/// The error that a dry run returns for a call that would have been allowed.
fn dry_run() -> ApiError {
    let text = "Request would have succeeded, but DryRun flag is set.";
    ApiError::new("DryRunOperation", text)
}

impl ApiDesk {
    /// Begins a call that changes something; its decisions are added to `out`.
    pub(crate) fn begin_call(&mut self, now: Time, call: &ApiCall, out: &mut Vec<Decision>) {
        self.now = now;
        let scope = CallScope { account: call.account.clone(), region: call.region.clone() };
        self.begin_region(&scope);
        let input = value_from_json(&call.input);
        let key = client_token(&input).map(|token| {
            let said = comparable(&input).to_string();
            ((scope.clone(), call.action.clone(), token.to_owned()), said)
        });
        if let Some((known, said)) = &key
            && let Some((before, answer)) = self.tokens.get(known)
        {
            let answer = if before == said {
                answer.clone()
            } else {
                let text = "The request uses the same client token as a previous, but non-identical request.";
                Err(ApiError::new("IdempotentParameterMismatch", text))
            };
            self.pending = Some((answer.map(PendingAnswer::Ready), None));
            return;
        }
        let checked = check_client_token(&call.action, &input)
            .and_then(|()| check_tags(&call.action, &input));
        let checks_first = DRY_CHECKS.contains(&call.action.as_str());
        let begun = match checked.and_then(|()| self.check_call_runs(&call.action, &input)) {
            Err(refused) => Err(refused),
            Ok(()) if !checks_first && is_dry_run(&input) => Err(dry_run()),
            Ok(()) => self.change(&scope, &call.action, &input, out),
        };
        self.pending = Some((begun, key));
    }

    fn change(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        match action {
            "RunInstances" => self.run_instances(scope, input, out),
            "TerminateInstances" => self.terminate_instances(scope, input, out),
            "StopInstances" => self.stop_instances(scope, input, out),
            "StartInstances" => self.start_instances(scope, input, out),
            "RebootInstances" => self.reboot_instances(scope, input),
            "RequestSpotInstances" => self.request_spot_instances(scope, input),
            "CancelSpotInstanceRequests" => self.cancel_spot_requests(scope, input, out),
            "CreateTags" | "DeleteTags" => self.change_tags(scope, action, input, out),
            "CreateKeyPair" | "ImportKeyPair" | "DeleteKeyPair" => {
                self.change_key_pairs(scope, action, input)
            }
            "CreateLaunchTemplate" => self.create_template(scope, input),
            "CreateLaunchTemplateVersion" => self.create_template_version(scope, input),
            "ModifyLaunchTemplate" => self.modify_template(scope, input),
            "DeleteLaunchTemplate" => self.delete_template(scope, input),
            "CreateFleet" => self.create_fleet(scope, input, out),
            "ModifyFleet" => self.modify_fleet(scope, input, out),
            "DeleteFleets" => self.delete_fleets(scope, input, out),
            "RequestSpotFleet" => self.request_spot_fleet(scope, input, out),
            "ModifySpotFleetRequest" => self.modify_spot_fleet(scope, input, out),
            "CancelSpotFleetRequests" => self.cancel_spot_fleets(scope, input, out),
            "ModifyInstanceCreditSpecification" => self.modify_credits(scope, input, out),
            "ModifyInstanceAttribute" => self.modify_attribute(scope, input),
            "ModifyInstanceMetadataOptions" => self.modify_metadata(scope, input),
            SHUTDOWN => self.shut_down(scope, input, out),
            "DeleteLaunchTemplateVersions" => self.delete_template_versions(scope, input),
            other => self.change_storage(scope, other, input),
        }
    }

    /// Executes a call that changes volumes or snapshots, or records of the network.
    fn change_storage(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        match action {
            "CreateVolume" => self.create_volume(scope, input),
            "DeleteVolume" => self.delete_volume(scope, input),
            "AttachVolume" => self.attach_volume(scope, input),
            "DetachVolume" => self.detach_volume(scope, input),
            "ModifyVolume" => self.modify_volume(scope, input),
            "CreateSnapshot" => self.create_snapshot(scope, input),
            "CreateSnapshots" => self.create_snapshots(scope, input),
            "CopySnapshot" => self.copy_snapshot(scope, input),
            "DeleteSnapshot" => self.delete_snapshot(scope, input),
            "ModifySnapshotAttribute" => self.modify_snapshot_attribute(scope, input),
            other => self.change_network(scope, other, input),
        }
    }

    /// Executes a call that changes records of the network.
    fn change_network(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        // The groups of an instance may be named by their names.
        self.instances.forget_all_described();
        match action {
            "CreateSecurityGroup" => self.create_group(scope, input),
            "DeleteSecurityGroup" => self.delete_group(scope, input),
            "AuthorizeSecurityGroupIngress"
            | "AuthorizeSecurityGroupEgress"
            | "RevokeSecurityGroupIngress"
            | "RevokeSecurityGroupEgress" => self.change_rules(scope, action, input),
            "ModifySecurityGroupRules" => self.modify_rules(scope, input),
            "UpdateSecurityGroupRuleDescriptionsIngress"
            | "UpdateSecurityGroupRuleDescriptionsEgress" => {
                self.update_rule_descriptions(scope, action, input)
            }
            "CreateVpc" => self.create_vpc(scope, input),
            "CreateDefaultVpc" => self.create_default_vpc(scope, input),
            "DeleteVpc" => self.delete_vpc(scope, input),
            "AssociateVpcCidrBlock" => self.associate_vpc_block(scope, input),
            "CreateSubnet" => self.create_subnet(scope, input),
            "CreateDefaultSubnet" => self.create_default_subnet(scope, input),
            "DeleteSubnet" => self.delete_subnet(scope, input),
            "CreateSubnetCidrReservation" => self.create_reservation(scope, input),
            "DeleteSubnetCidrReservation" => self.delete_reservation(scope, input),
            "ModifySubnetAttribute" => self.modify_subnet(scope, input),
            "CreateInternetGateway" => self.create_gateway(scope, input),
            "AttachInternetGateway" => self.attach_gateway(scope, input),
            "DetachInternetGateway" => self.detach_gateway(scope, input),
            "DeleteInternetGateway" => self.delete_gateway(scope, input),
            "CreateRoute" => self.create_route(scope, input),
            other => Err(not_played(other)),
        }
    }

    /// Completes the call that was begun last; its decisions are carried out after the answer. Returns the answer's digest; `None`
    /// if no call is pending.
    pub(crate) fn finish_call(&mut self, now: Time, out: &mut Vec<Decision>) -> Option<String> {
        self.now = now;
        let (begun, key) = self.pending.take()?;
        let answer = match begun {
            Ok(PendingAnswer::Ready(value)) => Ok(value),
            Ok(PendingAnswer::Reservation { instances, least }) => {
                self.finish_reservation(&instances, least, out)
            }
            Ok(PendingAnswer::Started { instances, answer }) => {
                self.finish_start(&instances, answer)
            }
            Ok(PendingAnswer::Fleet(id)) => self.finish_fleet(&id),
            Err(error) => Err(error),
        };
        // What was refused may be asked again under its token.
        if let Some((key, said)) = key.filter(|_| answer.is_ok()) {
            self.tokens.insert(key, (said, answer.clone()));
        }
        let digest = answer_digest(&answer);
        self.answer = Some(answer);
        self.keep_up(out);
        Some(digest)
    }

    /// Answers a call that changes nothing.
    ///
    /// # Errors
    ///
    /// The error that EC2 would return; `UnsupportedOperation` for a call that is not supported.
    pub fn read(
        &mut self,
        account: &str,
        region: &str,
        action: &str,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let scope = CallScope { account: account.to_owned(), region: region.to_owned() };
        let scope = &scope;
        self.begin_region(scope);
        let input = &*open_page(action, input)?;
        let answer = match action {
            "DescribeInstances" => self.describe_instances(scope, input),
            "DescribeInstanceStatus" => self.describe_instance_status(scope, input),
            "DescribeInstanceAttribute" => self.describe_attribute(scope, input),
            "DescribeSpotInstanceRequests" => self.describe_requests(scope, input),
            "DescribeSpotPriceHistory" => self.describe_prices(scope, input),
            "GetSpotPlacementScores" => self.placement_scores(input),
            "DescribeInstanceTypes" => self.describe_types(scope, input),
            "DescribeInstanceTypeOfferings" => self.describe_offerings(scope, input),
            "DescribeAvailabilityZones" => self.describe_zones(scope, input),
            "DescribeRegions" => self.describe_regions(input),
            "DescribeImages" => self.describe_images(scope, input),
            "DescribeVpcs" => self.describe_vpcs(scope, input),
            "DescribeSubnets" => self.describe_subnets(scope, input),
            "DescribeSecurityGroups" => self.describe_groups(scope, input),
            "DescribeRouteTables" => self.describe_route_tables(scope, input),
            "DescribeInternetGateways" => self.describe_gateways(scope, input),
            "DescribeKeyPairs" => self.describe_key_pairs(scope, input),
            "DescribeTags" => self.describe_tags(scope, input),
            "DescribeVolumes" => self.describe_volumes(scope, input),
            "DescribeVolumesModifications" => self.describe_modifications(scope, input),
            "DescribeSnapshots" => self.describe_snapshots(scope, input),
            "DescribeSnapshotAttribute" => self.describe_snapshot_attribute(scope, input),
            "GetSubnetCidrReservations" => self.subnet_reservations(scope, input),
            "DescribeCapacityReservations" => no_capacity_reservations(input),
            "DescribePlacementGroups" => no_placement_groups(input),
            "DescribeSecurityGroupRules" => self.describe_rules(scope, input),
            "DescribeNetworkInterfaces" => self.describe_interfaces(scope, input),
            "GetLaunchTemplateData" => self.template_data(scope, input),
            "DescribeFleetHistory" => self.fleet_history(scope, input),
            "DescribeSpotFleetRequestHistory" => self.spot_fleet_history(scope, input),
            "DescribeAccountAttributes" => self.describe_account(scope, input),
            "GetConsoleOutput" => self.console_output(scope, input),
            "GetInstanceUefiData" => self.uefi_data(scope, input),
            "DescribeLaunchTemplates" => self.describe_templates(scope, input),
            "DescribeLaunchTemplateVersions" => self.describe_template_versions(scope, input),
            "DescribeFleets" => self.describe_fleets(scope, input),
            "DescribeFleetInstances" => self.describe_fleet_instances(scope, input),
            "DescribeSpotFleetRequests" => self.describe_spot_fleets(scope, input),
            "DescribeSpotFleetInstances" => self.describe_spot_fleet_instances(scope, input),
            "DescribeInstanceCreditSpecifications" => self.describe_credits(scope, input),
            other => return Err(not_played(other)),
        };
        match answer {
            Ok(_) if is_dry_run(input) => Err(dry_run()),
            answer => answer.map(|answer| seal_page(action, answer)),
        }
    }

    /// Sets the desk's time, before it handles a call.
    pub const fn set_now(&mut self, now: Time) {
        self.now = now;
    }
}

/// The part of a call's input by which a repeated call with the same token is recognised: all except the user data,
/// which only the instance reads.
fn comparable(input: &WireValue) -> serde_json::Value {
    let mut json = value_to_json(input);
    if let Some(members) = json.as_object_mut() {
        members.remove("UserData");
    }
    json
}
