//! Tests of what EC2 refuses: values out of bounds, malformed ids and names, and tokens of other calls.

use dormouse_ec2_wire::WireValue;

use crate::testing::{Client, ids, text};

const ONE: &str = "InstanceType=c5.large&MinCount=1&MaxCount=1";
/// A well-formed id that no resource has, after the prefix of its kind.
const NOBODY: &str = "0123456789abcdef0";

fn codes(api: &mut Client, cases: &[(String, &str)]) {
    for (query, code) in cases {
        let error = api.call(query).expect_err(query);
        assert_eq!(&error.code, code, "{query}: {}", error.message);
    }
}

fn case(query: impl Into<String>, code: &'static str) -> (String, &'static str) {
    (query.into(), code)
}

#[test]
fn filters_have_names_and_tokens_are_short_and_ascii() {
    let mut api = Client::new();
    let many = |count: usize| -> String {
        (1..=count).map(|number| format!("&Filter.1.Value.{number}=v")).collect()
    };
    let launch = format!("RunInstances&ImageId=ami-12345678&{ONE}&ClientToken=");
    let fleet = "RequestSpotFleet&SpotFleetRequestConfig.IamFleetRole=r&SpotFleetRequestConfig.TargetCapacity=1\
        &SpotFleetRequestConfig.ClientToken=";
    codes(
        &mut api,
        &[
            case("DescribeInstances&Filter.1.Value.1=running", "InvalidParameterValue"),
            case("DescribeVpcs&Filter.1.Value.1=x", "InvalidParameterValue"),
            case(
                format!("DescribeInstances&Filter.1.Name=instance-id{}", many(201)),
                "FilterLimitExceeded",
            ),
            case(format!("{launch}{}", "t".repeat(65)), "InvalidParameterValue"),
            case(format!("{launch}%C3%BC"), "InvalidParameterValue"),
            case(format!("{fleet}{}", "t".repeat(65)), "InvalidParameterValue"),
        ],
    );
    api.ok(&format!("DescribeInstances&Filter.1.Name=instance-id{}", many(200)));
    api.ok(&format!("{launch}{}", "t".repeat(64)));
}

#[test]
fn a_page_is_of_its_call_and_not_too_large() {
    let mut api = Client::new();
    for _ in 0..6 {
        api.run(ONE);
    }
    let token = text(&api.ok("DescribeInstances&MaxResults=5"), &["NextToken"]);
    let rest = api.ok(&format!("DescribeInstances&MaxResults=5&NextToken={token}"));
    assert_eq!(rest.list("Reservations").len(), 1);
    let prices = "DescribeSpotPriceHistory&StartTime=2026-11-27T00:00:00Z&MaxResults=1";
    let of_prices = text(&api.ok(prices), &["NextToken"]);
    codes(
        &mut api,
        &[
            case(format!("DescribeVolumes&NextToken={token}"), "InvalidParameterValue"),
            case(format!("DescribeInstanceStatus&NextToken={token}"), "InvalidParameterValue"),
            case(format!("{prices}&NextToken={token}"), "InvalidParameterValue"),
            case(format!("DescribeInstances&NextToken={of_prices}"), "InvalidParameterValue"),
            case("DescribeInstances&NextToken=page-00000001", "InvalidParameterValue"),
            case("DescribeInstances&MaxResults=1001", "InvalidParameterValue"),
            case("DescribeInstanceTypes&MaxResults=101", "InvalidParameterValue"),
        ],
    );
    // Where EC2 says that it returns no more than a thousand, it does.
    api.ok("DescribeVolumes&MaxResults=5000");
    api.ok("DescribeSpotPriceHistory&MaxResults=5000");
}

#[test]
fn a_dry_run_checks_what_it_names() {
    let mut api = Client::new();
    let id = api.run(ONE).remove(0);
    let spot = "RequestSpotInstances&LaunchSpecification.ImageId=ami-12345678&DryRun=true";
    let launch = "RunInstances&ImageId=ami-12345678&MinCount=1&MaxCount=1&DryRun=true";
    let mut cases = Vec::new();
    for action in ["TerminateInstances", "StopInstances", "StartInstances", "RebootInstances"] {
        let call = |id: &str| format!("{action}&InstanceId.1={id}&DryRun=true");
        cases.push(case(call("foo"), "InvalidInstanceID.Malformed"));
        cases.push(case(call(&format!("i-{NOBODY}")), "InvalidInstanceID.NotFound"));
        cases.push(case(call(&id), "DryRunOperation"));
    }
    for (call, kind) in [(launch, "InstanceType"), (spot, "LaunchSpecification.InstanceType")] {
        cases.push(case(format!("{call}&{kind}=c9.foo"), "InvalidParameterValue"));
        cases.push(case(format!("{call}&{kind}=c5.large"), "DryRunOperation"));
    }
    let cancel = "CancelSpotInstanceRequests&DryRun=true&SpotInstanceRequestId.1";
    cases.push(case(format!("{cancel}=sir-12345678"), "InvalidSpotInstanceRequestID.NotFound"));
    codes(&mut api, &cases);
    assert_eq!(api.state(&id), "pending", "a dry run changes nothing");
    assert_eq!(api.session.bills().len(), 1);
    assert!(api.ok("DescribeSpotInstanceRequests").list("SpotInstanceRequests").is_empty());
}

#[test]
fn every_change_that_ec2_can_try_is_tried_by_a_dry_run() {
    let (mut api, mut others) = (Client::new(), Vec::new());
    for action in crate::calls::CHANGES {
        // EC2's changes without the parameter.
        if ["ModifySpotFleetRequest", "AssociateVpcCidrBlock", "ModifySubnetAttribute"]
            .contains(&action)
        {
            continue;
        }
        // What the model requires, and tags, are checked first.
        let code = api.code(&format!("{action}&DryRun=true"));
        let is_right = ["DryRunOperation", "MissingParameter"].contains(&code.as_str())
            || crate::calls::DRY_CHECKS.contains(&action) && code == "InvalidParameterValue";
        if !is_right {
            others.push(format!("{action}: {code}"));
        }
    }
    assert!(others.is_empty(), "{others:?}");
    assert!(api.ok("DescribeVolumes").list("Volumes").is_empty());
    assert_eq!(api.ok("DescribeVpcs").list("Vpcs").len(), 1);
}

#[test]
fn instances_that_are_up_can_be_rebooted_and_terminated_ones_are_ignored() {
    let mut api = Client::new();
    let id = api.run(ONE).remove(0);
    let reboot = format!("RebootInstances&InstanceId.1={id}");
    api.ok(&reboot);
    api.at(100);
    api.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert_eq!(api.code(&reboot), "IncorrectInstanceState");
    api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    api.ok(&reboot);
    assert_eq!(api.state(&id), "terminated");
}

#[test]
fn ids_and_names_have_their_forms() {
    let mut api = Client::new();
    let named = "CreateLaunchTemplate&LaunchTemplateData.ImageId=ami-12345678&LaunchTemplateName";
    let template =
        text(&api.ok(&format!("{named}=a.b_(c)/d-e")), &["LaunchTemplate", "LaunchTemplateId"]);
    let malformed = "InvalidLaunchTemplateName.MalformedException";
    let run = "RunInstances&InstanceType=c5.large&MinCount=1&MaxCount=1&LaunchTemplate";
    let both = format!("LaunchTemplateId={template}");
    let requests = "DescribeSpotInstanceRequests&SpotInstanceRequestId.1";
    let fleets = "DescribeSpotFleetRequests&SpotFleetRequestId.1";
    codes(
        &mut api,
        &[
            case(format!("{named}=ab"), malformed),
            case(format!("{named}=we%20b"), malformed),
            case(format!("{named}={}", "t".repeat(129)), malformed),
            case(
                format!("{run}.{both}&LaunchTemplate.LaunchTemplateName=abc"),
                "InvalidParameterCombination",
            ),
            case(
                format!("DeleteLaunchTemplate&{both}&LaunchTemplateName=abc"),
                "InvalidParameterCombination",
            ),
            case(format!("{run}.LaunchTemplateId=foo"), "InvalidLaunchTemplateId.Malformed"),
            case(format!("{run}.LaunchTemplateId=lt-{NOBODY}"), "InvalidLaunchTemplateId.NotFound"),
            case(format!("{requests}=foo"), "InvalidSpotInstanceRequestID.Malformed"),
            case(format!("{requests}=sir-{NOBODY}"), "InvalidSpotInstanceRequestID.NotFound"),
            case(format!("{fleets}=sfr"), "InvalidSpotFleetRequestId.Malformed"),
            case(format!("{fleets}=sfr-{NOBODY}"), "InvalidSpotFleetRequestId.NotFound"),
            case("DescribeSpotPriceHistory&AvailabilityZone=us-east-1z", "InvalidParameterValue"),
        ],
    );
}

#[test]
fn what_a_launch_or_a_rule_says_is_within_bounds() {
    let mut api = Client::new();
    // 16,384 bytes are 21,848 characters of base64.
    let longest = format!("{}==", "A".repeat(21_846));
    let run = format!("RunInstances&ImageId=ami-12345678&{ONE}");
    let template = "CreateLaunchTemplate&LaunchTemplateName=tpl&LaunchTemplateData.UserData=";
    let rule = |from: i64, to: i64| {
        format!(
            "AuthorizeSecurityGroupIngress&GroupName=default&IpProtocol=tcp&CidrIp=0.0.0.0/0&FromPort={from}&ToPort={to}"
        )
    };
    let id = api.run(ONE).remove(0);
    codes(
        &mut api,
        &[
            case(format!("{run}&UserData=A{longest}"), "InvalidParameterValue"),
            case(format!("{template}A{longest}"), "InvalidParameterValue"),
            case(
                format!("{run}&CreditSpecification.CpuCredits=unlimited"),
                "InvalidParameterCombination",
            ),
            case(
                format!("DescribeInstanceCreditSpecifications&InstanceId.1={id}"),
                "InstanceCreditSpecification.NotSupported",
            ),
            case(rule(5, 1), "InvalidParameterValue"),
        ],
    );
    api.ok(&format!("{run}&UserData={longest}"));
    api.ok(&format!("{run}&CreditSpecification.CpuCredits=standard"));
    api.ok(&rule(1, 5));
}

#[test]
fn volumes_have_the_sizes_and_speeds_of_their_types() {
    let mut api = Client::new();
    let create = "CreateVolume&AvailabilityZone=us-east-1a";
    for (wrong, least) in [
        ("Size=10&VolumeType=gp3&Iops=100", "minimum is 3000"),
        ("Size=10&VolumeType=gp3&Throughput=100", "minimum is 125"),
        ("Size=100&VolumeType=io1&Iops=64001", "maximum is 64000"),
        ("Size=3&VolumeType=io2&Iops=100", "minimum is 4"),
        ("Size=124&VolumeType=st1", "minimum is 125"),
        ("Size=1025&VolumeType=standard", "maximum is 1024"),
        ("Size=0&VolumeType=gp2", "minimum is 1"),
    ] {
        let error = api.call(&format!("{create}&{wrong}")).expect_err(wrong);
        assert_eq!(error.code, "InvalidParameterValue", "{wrong}");
        assert!(error.message.contains(least), "{wrong}: {}", error.message);
    }
    let volume = text(&api.ok(&format!("{create}&Size=10&VolumeType=gp3")), &["VolumeId"]);
    let slow = format!("ModifyVolume&VolumeId={volume}&Iops=2999");
    assert_eq!(api.code(&slow), "InvalidParameterValue");
    let root = "BlockDeviceMapping.1.DeviceName=/dev/sda1&BlockDeviceMapping.1.Ebs.Iops=100";
    let launch = format!("RunInstances&ImageId=ami-12345678&{ONE}&{root}");
    assert_eq!(api.code(&launch), "InvalidParameterValue");
}

#[test]
fn images_have_owners() {
    let mut api = Client::new();
    let mut owners = |query: &str| -> Vec<String> {
        let images = api.ok(&format!("DescribeImages{query}"));
        ids(images.list("Images"), "OwnerId")
    };
    let [amazon, canonical] = ["137112412989", "099720109477"];
    assert_eq!(owners(""), [amazon, amazon, canonical, canonical]);
    assert_eq!(owners("&Owner.1=amazon").len(), 4);
    assert_eq!(owners(&format!("&Owner.1={canonical}")), [canonical; 2]);
    assert_eq!(owners(&format!("&Owner.1=self&Owner.2={amazon}")), [amazon; 2]);
    let by_filter = format!("&Filter.1.Name=owner-id&Filter.1.Value.1={canonical}");
    assert_eq!(owners(&by_filter), [canonical; 2]);
    for nobodys in ["self", "aws-marketplace", "123456789012"] {
        assert!(owners(&format!("&Owner.1={nobodys}")).is_empty(), "{nobodys}");
    }
    assert_eq!(owners("&Owner.1=self&ImageId.1=ami-12345678").len(), 1, "its owner is not known");
    assert_eq!(api.code("DescribeImages&Owner.1=bogus"), "InvalidUserID.Malformed");
}

#[test]
fn fleets_have_capacities_that_ec2_gives() {
    let mut api = Client::new();
    let template = api
        .ok("CreateLaunchTemplate&LaunchTemplateName=tpl&LaunchTemplateData.ImageId=ami-12345678\
         &LaunchTemplateData.InstanceType=c5.large");
    let template = text(&template, &["LaunchTemplate", "LaunchTemplateId"]);
    let of = "LaunchTemplateConfigs.1.LaunchTemplateSpecification";
    let total = "TargetCapacitySpecification.TotalTargetCapacity";
    let without = format!("CreateFleet&{of}.LaunchTemplateId={template}&{total}=2&Type=maintain");
    let create = format!("{without}&{of}.Version=1");
    let made = text(&api.ok(&create), &["FleetId"]);
    let modify = format!(
        "ModifyFleet&FleetId={made}&ExcessCapacityTerminationPolicy=no-termination&{total}"
    );
    let config = "SpotFleetRequestConfig";
    let spot = format!(
        "RequestSpotFleet&{config}.IamFleetRole=r&{config}.LaunchSpecifications.1.ImageId=ami-12345678\
         &{config}.LaunchSpecifications.1.InstanceType=c5.large&{config}.TargetCapacity"
    );
    let older = text(&api.ok(&format!("{spot}=1")), &["SpotFleetRequestId"]);
    let change = format!("ModifySpotFleetRequest&SpotFleetRequestId={older}&TargetCapacity");
    let mut cases = vec![case(&without, "MissingParameter")];
    let calls =
        [create.replace(&format!("&{total}=2"), &format!("&{total}")), modify, spot, change];
    for number in ["-1", "10001", "2147483647"] {
        cases.extend(
            calls.iter().map(|call| case(format!("{call}={number}"), "InvalidParameterValue")),
        );
    }
    for part in ["SpotTargetCapacity", "OnDemandTargetCapacity"] {
        let part = format!("{create}&TargetCapacitySpecification.{part}=-3");
        cases.push(case(part, "InvalidParameterValue"));
    }
    for weight in ["0", "-2"] {
        let weight =
            format!("{create}&LaunchTemplateConfigs.1.Overrides.1.WeightedCapacity={weight}");
        cases.push(case(weight, "InvalidParameterValue"));
    }
    codes(&mut api, &cases);
    // What was refused has changed nothing.
    let fleet = api.ok(&format!("DescribeFleets&FleetId.1={made}")).list("Fleets")[0].clone();
    assert_eq!(
        fleet.at(&["TargetCapacitySpecification"]).and_then(|it| it.integer("TotalTargetCapacity")),
        Some(2)
    );
    assert_eq!(text(&fleet, &["ExcessCapacityTerminationPolicy"]), "termination");
    let failed = |answer: &WireValue, list: &str| text(&answer.list(list)[0], &["Error", "Code"]);
    let delete = format!("DeleteFleets&FleetId.1={made}&TerminateInstances=true");
    assert_eq!(api.ok(&delete).list("SuccessfulFleetDeletions").len(), 1);
    let again = api.ok(&delete);
    assert_eq!(failed(&again, "UnsuccessfulFleetDeletions"), "fleetNotInDeletableState");
    let mut cancel = |id: &str| {
        api.ok(&format!(
            "CancelSpotFleetRequests&SpotFleetRequestId.1={id}&TerminateInstances=true"
        ))
    };
    assert_eq!(cancel(&older).list("SuccessfulFleetRequests").len(), 1);
    for (id, code) in [
        (older.as_str(), "fleetRequestNotInCancellableState"),
        ("foo", "fleetRequestIdMalformed"),
        ("sfr-12345678", "fleetRequestIdDoesNotExist"),
    ] {
        assert_eq!(failed(&cancel(id), "UnsuccessfulFleetRequests"), code);
    }
}
