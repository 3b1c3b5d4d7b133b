//! Tests of networks, keys, tags, types and zones: records that clients read before they launch.

use crate::testing::{Client, ids, text};

#[test]
fn an_account_has_a_default_network() {
    let mut api = Client::new();
    let vpc = text(
        &api.ok("DescribeVpcs&Filter.1.Name=is-default&Filter.1.Value.1=true").list("Vpcs")[0],
        &["VpcId"],
    );
    let subnets = api.ok(&format!("DescribeSubnets&Filter.1.Name=vpc-id&Filter.1.Value.1={vpc}"));
    let subnet = text(&subnets.list("Subnets")[0], &["SubnetId"]);
    let id = api
        .run(&format!("InstanceType=c5.large&MinCount=1&MaxCount=1&SubnetId={subnet}"))
        .remove(0);
    let instance = api.instance(&id);
    assert_eq!(
        (text(&instance, &["SubnetId"]), text(&instance, &["VpcId"])),
        (subnet, vpc.clone())
    );
    assert_eq!(text(&instance, &["Placement", "AvailabilityZone"]), "us-east-1a");
    let tables = api.ok("DescribeRouteTables&Filter.1.Name=association.main&Filter.1.Value.1=true");
    let routes = tables.list("RouteTables")[0].list("Routes").to_vec();
    assert!(
        routes.iter().any(|route| text(route, &["GatewayId"]).starts_with("igw-")),
        "a way out"
    );
    let group = text(
        &api.ok(&format!("CreateSecurityGroup&GroupName=g&GroupDescription=d&VpcId={vpc}")),
        &["GroupId"],
    );
    api.ok(&format!(
        "AuthorizeSecurityGroupIngress&GroupId={group}&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=22\
         &IpPermissions.1.ToPort=22&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0"
    ));
    let groups = api.ok(&format!("DescribeSecurityGroups&GroupId.1={group}"));
    assert_eq!(groups.list("SecurityGroups")[0].list("IpPermissions").len(), 1);
    api.run(&format!("InstanceType=c5.large&MinCount=1&MaxCount=1&SecurityGroupId.1={group}"));
    assert_eq!(api.code(&format!("DeleteSecurityGroup&GroupId={group}")), "DependencyViolation");
    assert_eq!(api.ok("DescribeInternetGateways").list("InternetGateways").len(), 1);
}

#[test]
fn keys_and_tags_are_kept() {
    let mut api = Client::new();
    let key = text(&api.ok("CreateKeyPair&KeyName=k"), &["KeyPairId"]);
    assert_eq!(api.code("CreateKeyPair&KeyName=k"), "InvalidKeyPair.Duplicate");
    let id = api.run("InstanceType=c5.large&MinCount=1&MaxCount=1&KeyName=k").remove(0);
    api.ok(&format!("CreateTags&ResourceId.1={id}&ResourceId.2={key}&Tag.1.Key=a&Tag.1.Value=b"));
    let tags = api.ok("DescribeTags&Filter.1.Name=key&Filter.1.Value.1=a");
    assert_eq!(ids(tags.list("Tags"), "ResourceType"), ["instance", "key-pair"]);
    api.ok(&format!("DeleteTags&ResourceId.1={id}&Tag.1.Key=a"));
    assert_eq!(api.ok("DescribeTags").list("Tags").len(), 1);
    assert_eq!(
        api.code("CreateTags&ResourceId.1=i-0123456789abcdef0&Tag.1.Key=a"),
        "InvalidInstanceID.NotFound"
    );
    api.ok("DeleteKeyPair&KeyName=k");
    assert!(api.ok("DescribeKeyPairs").list("KeyPairs").is_empty());
}

#[test]
fn the_catalogue_is_the_experiments() {
    let mut api = Client::new();
    let types = api.ok("DescribeInstanceTypes");
    assert_eq!(
        ids(types.list("InstanceTypes"), "InstanceType"),
        ["c5.large", "m5.large", "t3.micro"]
    );
    let burst = api.ok(
        "DescribeInstanceTypes&Filter.1.Name=burstable-performance-supported&Filter.1.Value.1=true",
    );
    assert_eq!(ids(burst.list("InstanceTypes"), "InstanceType"), ["t3.micro"]);
    assert_eq!(api.code("DescribeInstanceTypes&InstanceType.1=c99.large"), "InvalidInstanceType");
    let zones = api.ok("DescribeAvailabilityZones");
    assert_eq!(ids(zones.list("AvailabilityZones"), "ZoneName"), ["us-east-1a"]);
    assert_eq!(ids(api.ok("DescribeRegions").list("Regions"), "RegionName"), ["us-east-1"]);
    assert_eq!(api.ok("DescribeImages&Owner.1=amazon").list("Images").len(), 4);
    let scores = api.ok("GetSpotPlacementScores&InstanceType.1=m5.large&TargetCapacity=2");
    assert_eq!(scores.list("SpotPlacementScores")[0].integer("Score"), Some(10));
    let id = api.run("InstanceType=t3.micro&MinCount=1&MaxCount=1").remove(0);
    let credits = |api: &mut Client| {
        let answer = api.ok(&format!("DescribeInstanceCreditSpecifications&InstanceId.1={id}"));
        text(&answer.list("InstanceCreditSpecifications")[0], &["CpuCredits"])
    };
    assert_eq!(credits(&mut api), "standard");
    api.ok(&format!(
        "ModifyInstanceCreditSpecification&InstanceCreditSpecification.1.InstanceId={id}&InstanceCreditSpecification.1.CpuCredits=unlimited"
    ));
    assert_eq!(credits(&mut api), "unlimited");
    api.at(60);
    let status = api.ok("DescribeInstanceStatus");
    assert_eq!(text(&status.list("InstanceStatuses")[0], &["InstanceStatus", "Status"]), "ok");
}
