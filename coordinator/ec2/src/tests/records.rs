//! Tests of networks, keys, tags, types and zones: records that clients read before they launch.

use dormouse_ec2_wire::WireValue;

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

/// The parameters of tags with these keys and values.
fn tags(tags: &[(String, String)]) -> String {
    let tag = |(place, (key, value)): (usize, &(String, String))| {
        format!("&Tag.{place}.Key={key}&Tag.{place}.Value={value}")
    };
    (1..).zip(tags).map(tag).collect()
}

#[test]
fn tags_are_as_many_and_as_long_as_at_ec2() {
    let mut api = Client::new();
    let many = |from: usize, count: usize| -> Vec<(String, String)> {
        (from..from + count).map(|number| (format!("k{number}"), "v".to_owned())).collect()
    };
    let one = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    let launch = |tags_of: &str| {
        let specified = tags_of.replace("&Tag.", "&TagSpecification.1.Tag.");
        format!(
            "RunInstances&ImageId=ami-12345678&InstanceType=c5.large&MinCount=1&MaxCount=1\
             &TagSpecification.1.ResourceType=instance{specified}"
        )
    };
    let id = api.run("InstanceType=c5.large&MinCount=1&MaxCount=1").remove(0);
    let twice = [one("k", "1"), one("k", "2")].concat();
    for (wrong, code, message) in [
        (many(0, 51), "TagLimitExceeded", "maximum number of Tags"),
        (one(&"k".repeat(129), ""), "InvalidParameterValue", "Tag key exceeds the maximum length"),
        (one("k", &"v".repeat(257)), "InvalidParameterValue", "of 256 characters"),
        (one("", "v"), "InvalidParameterValue", "cannot be empty"),
        (one("AWS:own", "v"), "InvalidParameterValue", "reserved for internal use: AWS:own"),
        (twice, "InvalidParameterValue", "Duplicate tag key 'k' specified."),
    ] {
        let said = tags(&wrong);
        let template = said.replace("&Tag.", "&LaunchTemplateData.TagSpecification.1.Tag.");
        let template =
            format!("&LaunchTemplateData.TagSpecification.1.ResourceType=instance{template}");
        let mut calls =
            vec![launch(&said), format!("CreateLaunchTemplate&LaunchTemplateName=tpl{template}")];
        let sets = format!("CreateTags&ResourceId.1={id}{said}");
        if message.starts_with("Duplicate") {
            api.ok(&sets);
            let tags = api.instance(&id).list("Tags").to_vec();
            assert_eq!(ids(&tags, "Value"), ["2"], "the last one counts");
        } else {
            calls.push(sets);
        }
        for call in calls {
            let error = api.call(&call).expect_err(message);
            assert_eq!(error.code, code, "{call}: {}", error.message);
            assert!(error.message.contains(message), "{call}: {}", error.message);
        }
    }
    // The greatest lengths, in characters, and the greatest number.
    let longest = one(&"%C3%BC".repeat(128), &"%C3%BC".repeat(256));
    api.ok(&launch(&tags(&[many(0, 49), longest].concat())));
    // A template's tags and those of its launch are one instance's; the launch's replace them.
    let template =
        tags(&many(0, 30)).replace("&Tag.", "&LaunchTemplateData.TagSpecification.1.Tag.");
    api.ok(&format!(
        "CreateLaunchTemplate&LaunchTemplateName=tpl\
         &LaunchTemplateData.TagSpecification.1.ResourceType=instance{template}"
    ));
    let more = |from: usize| {
        format!("{}&LaunchTemplate.LaunchTemplateName=tpl", launch(&tags(&many(from, 30))))
    };
    assert_eq!(api.code(&more(21)), "TagLimitExceeded");
    let answer = api.ok(&more(20));
    let of_aws = 2;
    assert_eq!(answer.list("Instances")[0].list("Tags").len(), 50 + of_aws);
}

#[test]
fn tags_of_a_launch_are_those_of_all_that_it_creates() {
    let mut api = Client::new();
    let kinds = ["instance", "volume", "network-interface", "spot-instances-request"];
    let specified: String = (1..)
        .zip(kinds)
        .map(|(at, kind)| {
            format!(
                "&LaunchTemplateData.TagSpecification.{at}.ResourceType={kind}\
                 &LaunchTemplateData.TagSpecification.{at}.Tag.1.Key=k\
                 &LaunchTemplateData.TagSpecification.{at}.Tag.1.Value={kind}"
            )
        })
        .collect();
    api.ok(&format!("CreateLaunchTemplate&LaunchTemplateName=tpl{specified}"));
    let spot = "InstanceType=c5.large&MinCount=1&MaxCount=1&InstanceMarketOptions.MarketType=spot";
    api.run(&format!("{spot}&LaunchTemplate.LaunchTemplateName=tpl"));
    let answer = api.ok("DescribeTags&Filter.1.Name=key&Filter.1.Value.1=k");
    let described = answer.list("Tags");
    assert_eq!(described.len(), kinds.len());
    for kind in kinds {
        let of = |tag: &&WireValue| tag.text("ResourceType") == Some(kind);
        assert_eq!(described.iter().find(of).and_then(|tag| tag.text("Value")), Some(kind));
    }
    let interface =
        "DescribeNetworkInterfaces&Filter.1.Name=tag:k&Filter.1.Value.1=network-interface";
    let id = ids(api.ok(interface).list("NetworkInterfaces"), "NetworkInterfaceId").remove(0);
    api.ok(&format!("CreateTags&ResourceId.1={id}&Tag.1.Key=k&Tag.1.Value=other"));
    assert!(api.ok(interface).list("NetworkInterfaces").is_empty());
    for (kind, call) in [
        ("snapshot", "CreateVpc&CidrBlock=10.0.0.0/16"),
        ("vpc", "CreateVolume&AvailabilityZone=us-east-1a&Size=1"),
    ] {
        let call = format!("{call}&TagSpecification.1.ResourceType={kind}");
        assert_eq!(api.code(&call), "InvalidParameterValue", "without a tag");
        let error = api.call(&format!("{call}&TagSpecification.1.Tag.1.Key=k")).expect_err(&call);
        assert!(error.message.starts_with(&format!("'{kind}' is not a valid")), "{error}");
    }
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
    let of_zones = "GetSpotPlacementScores&TargetCapacity=2&SingleAvailabilityZone=true";
    let zones = api.ok(of_zones);
    assert_eq!(ids(zones.list("SpotPlacementScores"), "AvailabilityZoneId"), ["use1-az1"]);
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
