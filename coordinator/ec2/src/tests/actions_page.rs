//! Tests of the documentation page that lists the actions: its text on each action, and the parameters that the desk
//! refuses.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dormouse_ec2_wire::{ApiRequest, ServiceModel, WireValue};

use crate::calls::is_change;
use crate::testing::Client;

/// Path of the documentation page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/ec2-actions.md");

/// Text of the page on each group of actions that belong together.
const GROUPS: [(&str, &str, &[&str]); 10] = [
    (
        "Instances",
        "Played: launches on demand and at spot prices, limits, capacity, boot, stop and start, hibernation by EC2, protection, \
         user data as it came, tokens, bills. Except with `--clock live`, nothing runs on an instance: its console is empty, a reboot takes \
         no time, and metadata options, monitoring and profiles are records. Burstable ones in unlimited mode pay for surplus credits by the use \
         that their tags declare.",
        &[
            "DescribeInstanceAttribute",
            "DescribeInstanceCreditSpecifications",
            "DescribeInstanceStatus",
            "DescribeInstances",
            "GetConsoleOutput",
            "GetInstanceUefiData",
            "ModifyInstanceAttribute",
            "ModifyInstanceCreditSpecification",
            "ModifyInstanceMetadataOptions",
            "RebootInstances",
            "RunInstances",
            "StartInstances",
            "StopInstances",
            "TerminateInstances",
        ],
    ),
    (
        "Spot requests and prices",
        "Played: one-time and persistent requests with their states and status codes, validity, the history of prices as the \
         experiment has it. Placement scores are ours: the part of the capacity that can be had now, from 1 to 10.",
        &[
            "CancelSpotInstanceRequests",
            "DescribeSpotInstanceRequests",
            "DescribeSpotPriceHistory",
            "GetSpotPlacementScores",
            "RequestSpotInstances",
        ],
    ),
    (
        "Fleets",
        "Played: instant, request and maintain, weights, both markets, targets that change, expiry, history. Which pool is taken \
         follows the experiment's availability and then the price; AWS keeps its own rule secret. Fleets interrupt by terminating \
         alone.",
        &[
            "CreateFleet",
            "DeleteFleets",
            "DescribeFleetHistory",
            "DescribeFleetInstances",
            "DescribeFleets",
            "ModifyFleet",
        ],
    ),
    (
        "Spot fleets",
        "Fleets by their older API.",
        &[
            "CancelSpotFleetRequests",
            "DescribeSpotFleetInstances",
            "DescribeSpotFleetRequestHistory",
            "DescribeSpotFleetRequests",
            "ModifySpotFleetRequest",
            "RequestSpotFleet",
        ],
    ),
    (
        "Launch templates",
        "Played: versions, the default and the latest one, launches and fleets from them.",
        &[
            "CreateLaunchTemplate",
            "CreateLaunchTemplateVersion",
            "DeleteLaunchTemplate",
            "DeleteLaunchTemplateVersions",
            "DescribeLaunchTemplateVersions",
            "DescribeLaunchTemplates",
            "GetLaunchTemplateData",
            "ModifyLaunchTemplate",
        ],
    ),
    (
        "The catalogue",
        "The experiment's types, zones and regions. Images are four of Amazon's and Canonical's names; any other well-formed id is \
         an image, too.",
        &[
            "DescribeAccountAttributes",
            "DescribeAvailabilityZones",
            "DescribeImages",
            "DescribeInstanceTypeOfferings",
            "DescribeInstanceTypes",
            "DescribeRegions",
        ],
    ),
    (
        "Tags and key pairs",
        "Records. Tags have EC2's bounds: 50 for a resource, 128 characters for a key, 256 for a \
         value. A created key has no material that opens anything.",
        &[
            "CreateKeyPair",
            "CreateTags",
            "DeleteKeyPair",
            "DeleteTags",
            "DescribeKeyPairs",
            "DescribeTags",
            "ImportKeyPair",
        ],
    ),
    (
        "Volumes and snapshots",
        "Records that store nothing and cost nothing: the volumes that a launch names, and others that are made, attached and \
         changed at once; snapshots that are complete at once. A volume ends with its instance as DeleteOnTermination says.",
        &[
            "AttachVolume",
            "CopySnapshot",
            "CreateSnapshot",
            "CreateSnapshots",
            "CreateVolume",
            "DeleteSnapshot",
            "DeleteVolume",
            "DescribeSnapshotAttribute",
            "DescribeSnapshots",
            "DescribeVolumes",
            "DescribeVolumesModifications",
            "DetachVolume",
            "ModifySnapshotAttribute",
            "ModifyVolume",
        ],
    ),
    (
        "Networks",
        "Records that route and block nothing: a default VPC with a subnet in each zone, others that are made, addresses of their \
         subnets. An instance has one interface, and no address of IPv6. Blocks of IPv6 are records; one that Amazon provides is of \
         the addresses for documentation. Reserved addresses are given to instances that name them alone.",
        &[
            "AssociateVpcCidrBlock",
            "AttachInternetGateway",
            "AuthorizeSecurityGroupEgress",
            "AuthorizeSecurityGroupIngress",
            "CreateDefaultSubnet",
            "CreateDefaultVpc",
            "CreateInternetGateway",
            "CreateRoute",
            "CreateSecurityGroup",
            "CreateSubnet",
            "CreateSubnetCidrReservation",
            "CreateVpc",
            "DeleteInternetGateway",
            "DeleteSecurityGroup",
            "DeleteSubnet",
            "DeleteSubnetCidrReservation",
            "DeleteVpc",
            "DescribeInternetGateways",
            "DescribeNetworkInterfaces",
            "DescribeRouteTables",
            "DescribeSecurityGroupRules",
            "DescribeSecurityGroups",
            "DescribeSubnets",
            "DescribeVpcs",
            "DetachInternetGateway",
            "GetSubnetCidrReservations",
            "ModifySecurityGroupRules",
            "ModifySubnetAttribute",
            "RevokeSecurityGroupEgress",
            "RevokeSecurityGroupIngress",
            "UpdateSecurityGroupRuleDescriptionsEgress",
            "UpdateSecurityGroupRuleDescriptionsIngress",
        ],
    ),
    (
        "What there is none of",
        "Empty lists: reservations of capacity and placement groups are not played.",
        &["DescribeCapacityReservations", "DescribePlacementGroups"],
    ),
];

const HEAD: &str = "# Which calls of EC2 are played

Every action that `dormouse ec2 EXPERIMENT` answers, and of each the parameters that it refuses: with `UnsupportedOperation` and the parameter's name, unless \
their value asks for nothing (false, 0 or an empty text). Within a parameter, members that are not played are refused the same way. Every other \
action of EC2 is `UnsupportedOperation` with its name. Actions in **bold** change something: each is in the run's log before it is answered. \
[What is played how](ec2-semantics.md) has the rules and their sources.

This page is made from the code; a test compares them.
";

/// The parameters that an action refuses, whatever other parameters a call has.
fn refused<'a>(api: &mut Client, model: &'a ServiceModel, action: &str) -> Vec<&'a str> {
    let mut out = Vec::new();
    for parameter in model.parameters(action) {
        let something = WireValue::List(vec![WireValue::structure()]);
        let request = ApiRequest {
            action: action.to_owned(),
            version: "2016-11-15".to_owned(),
            input: WireValue::structure().with(parameter.to_owned(), something),
        };
        let answer = api.session.call("page", "us-east-1", &request);
        let text = format!("{action} does not play the parameter {parameter} here");
        if answer.is_err_and(|error| error.message.starts_with(&text)) {
            out.push(parameter);
        }
    }
    out
}

#[test]
fn the_page_of_actions_is_what_the_desk_plays() {
    let (mut api, model) = (Client::new(), ServiceModel::ec2().expect("it is built in"));
    let mut page = HEAD.to_owned();
    let mut listed = BTreeSet::new();
    for (title, about, actions) in GROUPS {
        let _ = write!(
            page,
            "\n## {title}\n\n{about}\n\n| action | parameters that are refused |\n|---|---|\n"
        );
        for action in actions {
            let name =
                if is_change(action) { format!("**{action}**") } else { (*action).to_owned() };
            let refused = refused(&mut api, &model, action);
            let refused: Vec<String> = refused.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "| {name} | {} |", refused.join(", "));
            assert!(listed.insert(*action), "{action} is there twice");
        }
    }
    assert_eq!(listed, model.actions().collect(), "the model's actions, and those that are listed");
    #[expect(clippy::disallowed_methods, reason = "the page is written where a person asks for it")]
    if std::env::var("SNAPSHOTS").is_ok_and(|wanted| wanted == "overwrite") {
        std::fs::write(PAGE, &page).expect("the page is written");
    }
    #[expect(clippy::disallowed_methods, reason = "the page is a file")]
    let there = std::fs::read_to_string(PAGE).expect("the page is there");
    assert!(
        page == there,
        "docs/reference/ec2-actions.md is not what the desk plays; write it anew: \
         SNAPSHOTS=overwrite cargo test -p dormouse-ec2 actions_page"
    );
}
