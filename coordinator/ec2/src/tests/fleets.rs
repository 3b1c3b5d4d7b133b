//! Launch templates and fleets.

use crate::testing::{Client, ids, text};

fn template(api: &mut Client) {
    api.ok("CreateLaunchTemplate&LaunchTemplateName=tpl&LaunchTemplateData.ImageId=ami-12345678&LaunchTemplateData.InstanceType=c5.large");
}

const CONFIG: &str = "LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=tpl\
    &LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=$Latest\
    &LaunchTemplateConfigs.1.Overrides.1.InstanceType=m5.large&LaunchTemplateConfigs.1.Overrides.2.InstanceType=c5.large";

fn fleet(kind: &str, total: u32, strategy: &str) -> String {
    format!(
        "CreateFleet&Type={kind}&{CONFIG}&TargetCapacitySpecification.TotalTargetCapacity={total}\
         &TargetCapacitySpecification.DefaultTargetCapacityType=spot&SpotOptions.AllocationStrategy={strategy}"
    )
}

/// The types of the instances that are alive.
fn kinds(api: &mut Client) -> Vec<String> {
    let answer = api.ok(
        "DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=pending&Filter.1.Value.2=running",
    );
    let all: Vec<_> =
        answer.list("Reservations").iter().flat_map(|it| it.list("Instances")).cloned().collect();
    let mut kinds = ids(&all, "InstanceType");
    kinds.sort();
    kinds
}

#[test]
fn an_instant_fleet_takes_pools_by_its_strategy() {
    for (strategy, wanted) in [
        ("lowest-price", ["c5.large", "c5.large", "c5.large", "c5.large"]),
        ("diversified", ["c5.large", "c5.large", "m5.large", "m5.large"]),
        ("price-capacity-optimized", ["c5.large", "c5.large", "c5.large", "c5.large"]),
    ] {
        let mut api = Client::new();
        template(&mut api);
        let answer = api.ok(&fleet("instant", 4, strategy));
        let had: usize =
            answer.list("Instances").iter().map(|it| it.texts("InstanceIds").len()).sum();
        assert_eq!((had, answer.list("Errors").len()), (4, 0), "{strategy}");
        assert_eq!(kinds(&mut api), wanted, "{strategy}");
    }
    // Two of them can be had.
    let mut api = Client::new();
    template(&mut api);
    let one = fleet("instant", 3, "lowest-price")
        .replace("&LaunchTemplateConfigs.1.Overrides.2.InstanceType=c5.large", "");
    let answer = api.ok(&one);
    assert_eq!(answer.list("Instances")[0].texts("InstanceIds").len(), 2);
    assert_eq!(text(&answer.list("Errors")[0], &["ErrorCode"]), "InsufficientInstanceCapacity");
}

#[test]
fn a_maintained_fleet_replaces_what_it_loses_and_follows_its_target() {
    let mut api = Client::new();
    template(&mut api);
    let id = text(&api.ok(&fleet("maintain", 2, "lowest-price")), &["FleetId"]);
    assert_eq!(kinds(&mut api), ["c5.large", "c5.large"]);
    let answer = api.ok(&format!("DescribeFleetInstances&FleetId={id}"));
    let first = ids(answer.list("ActiveInstances"), "InstanceId").remove(0);
    api.ok(&format!("TerminateInstances&InstanceId.1={first}"));
    assert_eq!(kinds(&mut api), ["c5.large", "c5.large"], "it is replaced");
    // The price on demand is $0.085: it is not outbid. Now m5.large is the cheaper one.
    api.at(4_000);
    api.ok(&format!("ModifyFleet&FleetId={id}&TargetCapacitySpecification.TotalTargetCapacity=3"));
    assert_eq!(kinds(&mut api), ["c5.large", "c5.large", "m5.large"]);
    // In the fourth hour no m5.large can be had: it is taken back, and replaced by what there is.
    api.at(10_920);
    assert_eq!(kinds(&mut api), ["c5.large", "c5.large", "c5.large"]);
    let fleets = api.ok(&format!("DescribeFleets&FleetId.1={id}"));
    assert_eq!(text(&fleets.list("Fleets")[0], &["ActivityStatus"]), "fulfilled");
    api.ok(&format!("ModifyFleet&FleetId={id}&TargetCapacitySpecification.TotalTargetCapacity=1"));
    assert_eq!(kinds(&mut api).len(), 1);
    api.ok(&format!("DeleteFleets&FleetId.1={id}&TerminateInstances=true"));
    assert!(kinds(&mut api).is_empty());
    let fleets = api.ok(&format!("DescribeFleets&FleetId.1={id}"));
    assert_eq!(text(&fleets.list("Fleets")[0], &["FleetState"]), "deleted");
}

#[test]
fn a_request_is_not_replaced() {
    let mut api = Client::new();
    template(&mut api);
    let id = text(&api.ok(&fleet("request", 2, "diversified")), &["FleetId"]);
    assert_eq!(kinds(&mut api), ["c5.large", "m5.large"]);
    api.at(10_920);
    assert_eq!(kinds(&mut api), ["c5.large"], "what was taken back is gone");
    assert_eq!(api.code("DescribeFleets&FleetId.1=fleet-1"), "InvalidFleetId.NotFound");
    let answer = api.ok(&format!("DescribeFleets&FleetId.1={id}"));
    assert_eq!(text(&answer.list("Fleets")[0], &["Type"]), "request");
}

#[test]
fn templates_have_versions() {
    let mut api = Client::new();
    template(&mut api);
    api.ok("CreateLaunchTemplateVersion&LaunchTemplateName=tpl&SourceVersion=1&LaunchTemplateData.InstanceType=m5.large");
    let run = |version: &str| {
        format!("RunInstances&MinCount=1&MaxCount=1&LaunchTemplate.LaunchTemplateName=tpl{version}")
    };
    let kind = |api: &mut Client, version: &str| {
        let answer = api.ok(&run(version));
        text(&answer.list("Instances")[0], &["InstanceType"])
    };
    assert_eq!(kind(&mut api, ""), "c5.large", "the default is the first");
    assert_eq!(kind(&mut api, "&LaunchTemplate.Version=$Latest"), "m5.large");
    api.ok("ModifyLaunchTemplate&LaunchTemplateName=tpl&SetDefaultVersion=2");
    assert_eq!(kind(&mut api, ""), "m5.large");
    assert_eq!(
        api.code(&run("&LaunchTemplate.Version=9")),
        "InvalidLaunchTemplateId.VersionNotFound"
    );
    let versions = api.ok("DescribeLaunchTemplateVersions&LaunchTemplateName=tpl");
    assert_eq!(versions.list("LaunchTemplateVersions").len(), 2);
    api.ok("DeleteLaunchTemplate&LaunchTemplateName=tpl");
    assert_eq!(api.code(&run("")), "InvalidLaunchTemplateName.NotFoundException");
}

#[test]
fn a_spot_fleet_is_a_fleet_by_its_older_api() {
    let mut api = Client::new();
    let config = "SpotFleetRequestConfig.IamFleetRole=role&SpotFleetRequestConfig.AllocationStrategy=lowestPrice\
        &SpotFleetRequestConfig.SpotPrice=0.05&SpotFleetRequestConfig.ClientToken=tok\
        &SpotFleetRequestConfig.LaunchSpecifications.1.ImageId=ami-12345678\
        &SpotFleetRequestConfig.LaunchSpecifications.1.InstanceType=c5.large\
        &SpotFleetRequestConfig.LaunchSpecifications.2.ImageId=ami-12345678\
        &SpotFleetRequestConfig.LaunchSpecifications.2.InstanceType=m5.large\
        &SpotFleetRequestConfig.LaunchSpecifications.2.WeightedCapacity=2";
    let request = format!("RequestSpotFleet&{config}&SpotFleetRequestConfig.TargetCapacity=4");
    let id = text(&api.ok(&request), &["SpotFleetRequestId"]);
    assert_eq!(text(&api.ok(&request), &["SpotFleetRequestId"]), id, "the token is known");
    // A unit of m5.large costs $0.02, one of c5.large $0.03.
    assert_eq!(kinds(&mut api), ["m5.large", "m5.large"]);
    let fleets = api.ok(&format!("DescribeSpotFleetRequests&SpotFleetRequestId.1={id}"));
    let config =
        fleets.list("SpotFleetRequestConfigs")[0].member("SpotFleetRequestConfig").cloned();
    assert_eq!(config.and_then(|config| config.float("FulfilledCapacity")), Some(4.0));
    api.ok(&format!("ModifySpotFleetRequest&SpotFleetRequestId={id}&TargetCapacity=5"));
    assert_eq!(
        kinds(&mut api),
        ["c5.large", "m5.large", "m5.large"],
        "no third m5.large can be had"
    );
    // c5.large is outbid in the second hour, and comes back in the third.
    api.at(3_720);
    assert_eq!(kinds(&mut api), ["m5.large", "m5.large"]);
    api.at(7_200);
    assert_eq!(kinds(&mut api), ["c5.large", "m5.large", "m5.large"]);
    let own = api.ok(&format!("DescribeSpotFleetInstances&SpotFleetRequestId={id}"));
    assert_eq!(own.list("ActiveInstances").len(), 3);
    assert!(api.ok("DescribeFleets").list("Fleets").is_empty(), "it is none of EC2's fleets");
    api.ok(&format!("CancelSpotFleetRequests&SpotFleetRequestId.1={id}&TerminateInstances=true"));
    assert!(kinds(&mut api).is_empty());
}

#[test]
fn a_fleet_has_a_history() {
    let mut api = Client::new();
    api.ok("CreateLaunchTemplate&LaunchTemplateName=tpl&LaunchTemplateData.ImageId=ami-12345678\
         &LaunchTemplateData.InstanceType=c5.large");
    let made = api.ok(
        "CreateFleet&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=tpl\
         &LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1&Type=maintain\
         &SpotOptions.AllocationStrategy=lowestPrice\
         &TargetCapacitySpecification.DefaultTargetCapacityType=spot&TargetCapacitySpecification.TotalTargetCapacity=2",
    );
    let fleet = made.text("FleetId").expect("it has an id").to_owned();
    api.at(100);
    api.ok(&format!("DeleteFleets&FleetId.1={fleet}&TerminateInstances=true"));
    let names = |api: &mut Client, rest: &str| -> Vec<String> {
        let query =
            format!("DescribeFleetHistory&FleetId={fleet}&StartTime=2020-01-01T00:00:00Z{rest}");
        let records = api.ok(&query);
        let name = |one| text(one, &["EventInformation", "EventSubType"]);
        records.list("HistoryRecords").iter().map(name).collect()
    };
    assert_eq!(
        names(&mut api, ""),
        ["submitted", "active", "launched", "launched", "terminated", "terminated", "deleted"]
    );
    assert_eq!(names(&mut api, "&EventType=fleet-change"), ["submitted", "active", "deleted"]);
}
