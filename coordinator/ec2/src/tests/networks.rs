//! Tests of networks that users make: VPCs, subnets with their addresses, rules of groups, gateways.

use dormouse_ec2_wire::WireValue;

use crate::testing::{Client, ids, text};

fn new_vpc(api: &mut Client) -> String {
    text(&api.ok("CreateVpc&CidrBlock=10.0.0.0/16"), &["Vpc", "VpcId"])
}

fn new_subnet(api: &mut Client, vpc: &str, block: &str) -> String {
    let answer = api.ok(&format!("CreateSubnet&VpcId={vpc}&CidrBlock={block}"));
    text(&answer, &["Subnet", "SubnetId"])
}

fn free_addresses(api: &mut Client, subnet: &str) -> Option<i64> {
    let subnets = api.ok(&format!("DescribeSubnets&SubnetId.1={subnet}"));
    subnets.list("Subnets")[0].integer("AvailableIpAddressCount")
}

#[test]
fn instances_have_the_addresses_of_their_subnet() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let subnet = new_subnet(&mut api, &vpc, "10.0.1.0/28");
    let launch = format!("InstanceType=c5.large&MinCount=1&MaxCount=99&SubnetId={subnet}");
    let all = api.run(&launch);
    assert_eq!((all.len(), free_addresses(&mut api, &subnet)), (11, Some(0)));
    let mut addresses: Vec<String> =
        all.iter().map(|id| text(&api.instance(id), &["PrivateIpAddress"])).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 11, "each has one of its own");
    assert!(addresses.contains(&"10.0.1.4".to_owned()), "{addresses:?}");
    let another = format!("RunInstances&ImageId=ami-12345678&{launch}");
    assert_eq!(api.code(&another), "InsufficientFreeAddressesInSubnet");
    assert_eq!(api.code(&format!("DeleteSubnet&SubnetId={subnet}")), "DependencyViolation");
    // A stopped instance keeps its address; one that is gone does not.
    api.at(60);
    api.ok(&format!("StopInstances&InstanceId.1={}", all[0]));
    assert_eq!(free_addresses(&mut api, &subnet), Some(0));
    api.ok(&format!("TerminateInstances&InstanceId.1={}&InstanceId.2={}", all[0], all[1]));
    assert_eq!(free_addresses(&mut api, &subnet), Some(2));
    let one = api.run(&format!(
        "InstanceType=c5.large&MinCount=1&MaxCount=1&SubnetId={subnet}&PrivateIpAddress=10.0.1.4"
    ));
    assert_eq!(text(&api.instance(&one[0]), &["PrivateIpAddress"]), "10.0.1.4");
    let interfaces = api.ok(&format!(
        "DescribeNetworkInterfaces&Filter.1.Name=attachment.instance-id&Filter.1.Value.1={}",
        one[0]
    ));
    let address = text(&interfaces.list("NetworkInterfaces")[0], &["PrivateIpAddress"]);
    assert_eq!(address, "10.0.1.4");
}

#[test]
fn blocks_have_to_fit_and_not_to_overlap() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    new_subnet(&mut api, &vpc, "10.0.0.0/24");
    for (query, code) in [
        ("CreateVpc&CidrBlock=10.0.0.0/8".to_owned(), "InvalidVpc.Range"),
        ("CreateVpc&CidrBlock=169.254.0.0/16".to_owned(), "InvalidVpc.Range"),
        ("CreateVpc&CidrBlock=169.254.169.240/28".to_owned(), "InvalidVpc.Range"),
        ("CreateVpc&CidrBlock=127.0.0.0/16".to_owned(), "InvalidVpc.Range"),
        ("CreateVpc&CidrBlock=255.0.0.0/16".to_owned(), "InvalidVpc.Range"),
        (format!("AssociateVpcCidrBlock&VpcId={vpc}&CidrBlock=169.254.0.0/24"), "InvalidVpc.Range"),
        ("CreateVpc&CidrBlock=1000.0.0.0/16".to_owned(), "InvalidParameterValue"),
        (format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.1.0.0/24"), "InvalidSubnet.Range"),
        (format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.0.0.128/25"), "InvalidSubnet.Conflict"),
        (
            format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.0.1.0/24&AvailabilityZone=mars-1a"),
            "InvalidParameterValue",
        ),
        ("CreateSubnet&VpcId=vpc-0&CidrBlock=10.0.1.0/24".to_owned(), "InvalidVpcID.NotFound"),
        (format!("DeleteVpc&VpcId={vpc}"), "DependencyViolation"),
        ("CreateDefaultVpc".to_owned(), "DefaultVpcAlreadyExists"),
        (
            "CreateDefaultSubnet&AvailabilityZone=us-east-1a".to_owned(),
            "DefaultSubnetAlreadyExistsInAvailabilityZone",
        ),
    ] {
        assert_eq!(api.code(&query), code, "{query}");
    }
    api.ok(&format!("AssociateVpcCidrBlock&VpcId={vpc}&CidrBlock=10.1.0.0/16"));
    new_subnet(&mut api, &vpc, "10.1.0.0/24");
}

#[test]
fn without_a_default_network_a_launch_needs_a_subnet() {
    let mut api = Client::new();
    let vpcs = api.ok("DescribeVpcs");
    let vpc = text(&vpcs.list("Vpcs")[0], &["VpcId"]);
    let subnets = api.ok("DescribeSubnets");
    let subnet = text(&subnets.list("Subnets")[0], &["SubnetId"]);
    api.ok(&format!("DeleteSubnet&SubnetId={subnet}"));
    let launch = "RunInstances&ImageId=ami-12345678&InstanceType=c5.large&MinCount=1&MaxCount=1";
    assert_eq!(api.code(launch), "MissingInput");
    api.ok(&format!("DeleteVpc&VpcId={vpc}"));
    assert_eq!(api.code(launch), "VPCIdNotSpecified");
    api.ok("CreateDefaultVpc");
    api.ok(launch);
}

#[test]
fn members_of_a_default_group_may_reach_each_other() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let groups = api.ok("DescribeSecurityGroups&GroupName.1=default");
    assert_eq!(groups.list("SecurityGroups").len(), 2);
    for group in groups.list("SecurityGroups") {
        let id = text(group, &["GroupId"]);
        let inwards = group.list("IpPermissions");
        let peers = inwards.iter().flat_map(|permission| permission.list("UserIdGroupPairs"));
        let peers: Vec<_> = peers.map(|peer| text(peer, &["GroupId"])).collect();
        assert_eq!(peers, [id.as_str()]);
        assert_eq!(text(&inwards[0], &["IpProtocol"]), "-1");
        assert_eq!(
            text(&inwards[0].list("UserIdGroupPairs")[0], &["UserId"]),
            text(group, &["OwnerId"])
        );
        let find =
            format!("DescribeSecurityGroupRules&Filter.1.Name=group-id&Filter.1.Value.1={id}");
        let rules = api.ok(&find);
        let egress = rules.list("SecurityGroupRules").iter().map(|rule| rule.flag("IsEgress"));
        assert_eq!(egress.collect::<Vec<_>>(), [Some(true), Some(false)]);
    }
    // A group that a user makes has no such rule, and one's own rule keeps no group from being deleted.
    let made = api.ok(&format!("CreateSecurityGroup&GroupName=g&GroupDescription=d&VpcId={vpc}"));
    let made = text(&made, &["GroupId"]);
    let groups = api.ok(&format!("DescribeSecurityGroups&GroupId.1={made}"));
    assert!(groups.list("SecurityGroups")[0].list("IpPermissions").is_empty());
    api.ok(&format!("DeleteSecurityGroup&GroupId={made}"));
    api.ok(&format!("DeleteVpc&VpcId={vpc}"));
}

#[test]
fn an_instance_is_given_groups_of_its_own_vpc() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let subnet = new_subnet(&mut api, &vpc, "10.0.1.0/24");
    let group = |api: &mut Client, vpc: &str| {
        let made = format!("CreateSecurityGroup&GroupName=g&GroupDescription=d{vpc}");
        text(&api.ok(&made), &["GroupId"])
    };
    let (of_default, own) = (group(&mut api, ""), group(&mut api, &format!("&VpcId={vpc}")));
    let id = api
        .run(&format!("InstanceType=c5.large&MinCount=1&MaxCount=1&SubnetId={subnet}"))
        .remove(0);
    let give = |group: &str| format!("ModifyInstanceAttribute&InstanceId={id}&GroupId.1={group}");
    assert_eq!(api.code(&give(&of_default)), "InvalidGroup.NotFound");
    api.ok(&give(&own));
    assert_eq!(text(&api.instance(&id).list("SecurityGroups")[0], &["GroupId"]), own);
}

#[test]
fn rules_are_added_found_changed_and_revoked() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let created = format!("CreateSecurityGroup&GroupName=g&GroupDescription=d&VpcId={vpc}");
    let group = text(&api.ok(&created), &["GroupId"]);
    assert_eq!(api.code(&created), "InvalidGroup.Duplicate");
    let ssh = "IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=22&IpPermissions.1.ToPort=22\
        &IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8&IpPermissions.1.IpRanges.1.Description=in";
    let authorize = format!("AuthorizeSecurityGroupIngress&GroupId={group}&{ssh}");
    let added = api.ok(&authorize);
    let rule = text(&added.list("SecurityGroupRules")[0], &["SecurityGroupRuleId"]);
    assert_eq!(api.code(&authorize), "InvalidPermission.Duplicate");
    let find =
        format!("DescribeSecurityGroupRules&Filter.1.Name=group-id&Filter.1.Value.1={group}");
    let found = api.ok(&find);
    let egress = |value: &WireValue| value.flag("IsEgress");
    let of: Vec<_> = found.list("SecurityGroupRules").iter().map(egress).collect();
    assert_eq!(of, [Some(true), Some(false)], "all may go out from the beginning");
    api.ok(&format!(
        "ModifySecurityGroupRules&GroupId={group}&SecurityGroupRule.1.SecurityGroupRuleId={rule}\
         &SecurityGroupRule.1.SecurityGroupRule.IpProtocol=udp&SecurityGroupRule.1.SecurityGroupRule.FromPort=53\
         &SecurityGroupRule.1.SecurityGroupRule.ToPort=54&SecurityGroupRule.1.SecurityGroupRule.CidrIpv4=1.2.3.4/32"
    ));
    let groups = api.ok(&format!("DescribeSecurityGroups&GroupId.1={group}"));
    let permission = &groups.list("SecurityGroups")[0].list("IpPermissions")[0];
    assert_eq!(
        (text(permission, &["IpProtocol"]), permission.integer("ToPort")),
        ("udp".to_owned(), Some(54))
    );
    let revoke = format!("RevokeSecurityGroupIngress&GroupId={group}&{ssh}");
    assert_eq!(api.code(&revoke), "InvalidPermission.NotFound");
    api.ok(&format!("RevokeSecurityGroupIngress&GroupId={group}&SecurityGroupRuleId.1={rule}"));
    assert_eq!(api.ok(&find).list("SecurityGroupRules").len(), 1);
    for (rest, code) in [
        ("IpPermissions.1.IpProtocol=tcp", "MissingParameter"),
        (
            "IpPermissions.1.IpProtocol=tcp&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8",
            "InvalidParameterValue",
        ),
        (
            "IpPermissions.1.IpProtocol=-1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0",
            "InvalidParameterValue",
        ),
        (
            "IpPermissions.1.IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=sg-0",
            "InvalidGroup.NotFound",
        ),
    ] {
        let query = format!("AuthorizeSecurityGroupIngress&GroupId={group}&{rest}");
        assert_eq!(api.code(&query), code, "{query}");
    }
}

#[test]
fn a_gateway_is_attached_to_one_network() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let made = api.ok("CreateInternetGateway");
    let gateway = text(&made, &["InternetGateway", "InternetGatewayId"]);
    let attach = format!("AttachInternetGateway&InternetGatewayId={gateway}&VpcId={vpc}");
    api.ok(&attach);
    assert_eq!(api.code(&attach), "Resource.AlreadyAssociated");
    assert_eq!(api.code(&format!("DeleteVpc&VpcId={vpc}")), "DependencyViolation");
    let tables =
        api.ok(&format!("DescribeRouteTables&Filter.1.Name=vpc-id&Filter.1.Value.1={vpc}"));
    let table = ids(tables.list("RouteTables"), "RouteTableId").remove(0);
    let route = format!(
        "CreateRoute&RouteTableId={table}&DestinationCidrBlock=0.0.0.0/0&GatewayId={gateway}"
    );
    api.ok(&route);
    assert_eq!(api.code(&route), "RouteAlreadyExists");
    let delete = format!("DeleteInternetGateway&InternetGatewayId={gateway}");
    assert_eq!(api.code(&delete), "DependencyViolation");
    api.ok(&format!("DetachInternetGateway&InternetGatewayId={gateway}&VpcId={vpc}"));
    api.ok(&delete);
    api.ok(&format!("DeleteVpc&VpcId={vpc}"));
}

#[test]
fn versions_of_a_template_are_deleted_and_an_instance_makes_one() {
    let mut api = Client::new();
    api.ok("CreateLaunchTemplate&LaunchTemplateName=tpl&LaunchTemplateData.ImageId=ami-12345678");
    for kind in ["c5.large", "m5.large"] {
        api.ok(&format!(
            "CreateLaunchTemplateVersion&LaunchTemplateName=tpl&SourceVersion=1&LaunchTemplateData.InstanceType={kind}"
        ));
    }
    let gone = api
        .ok("DeleteLaunchTemplateVersions&LaunchTemplateName=tpl&LaunchTemplateVersion.1=1\
         &LaunchTemplateVersion.2=3&LaunchTemplateVersion.3=9");
    let codes: Vec<String> = gone
        .list("UnsuccessfullyDeletedLaunchTemplateVersions")
        .iter()
        .map(|failed| text(failed, &["ResponseError", "Code"]))
        .collect();
    assert_eq!(codes, ["unexpectedError", "launchTemplateVersionDoesNotExist"]);
    let left = api.ok("DescribeLaunchTemplateVersions&LaunchTemplateName=tpl");
    let left: Vec<_> =
        left.list("LaunchTemplateVersions").iter().map(|it| it.integer("VersionNumber")).collect();
    assert_eq!(left, [Some(2), Some(1)]);
    // A number is not given twice.
    let next = api.ok(
        "CreateLaunchTemplateVersion&LaunchTemplateName=tpl&LaunchTemplateData.InstanceType=t3.micro",
    );
    assert_eq!(
        next.at(&["LaunchTemplateVersion"]).and_then(|it| it.integer("VersionNumber")),
        Some(4)
    );
    let id = api
        .run("LaunchTemplate.LaunchTemplateName=tpl&LaunchTemplate.Version=2&MinCount=1&MaxCount=1")
        .remove(0);
    let data = api.ok(&format!("GetLaunchTemplateData&InstanceId={id}"));
    assert_eq!(text(&data, &["LaunchTemplateData", "InstanceType"]), "c5.large");
}

#[test]
fn reserved_addresses_are_given_to_nobody_who_does_not_name_them() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let subnet = new_subnet(&mut api, &vpc, "10.0.1.0/28");
    let reserve = |block: &str| {
        format!(
            "CreateSubnetCidrReservation&SubnetId={subnet}&ReservationType=explicit&Cidr={block}"
        )
    };
    let reserved = text(&api.ok(&reserve("10.0.1.8/30")), &["SubnetCidrReservation", "Cidr"]);
    assert_eq!(reserved, "10.0.1.8/30");
    assert_eq!(api.code(&reserve("10.0.1.8/31")), "InvalidParameterValue");
    assert_eq!(api.code(&reserve("10.0.2.0/30")), "InvalidParameterValue");
    let launch = format!("InstanceType=c5.large&MinCount=1&SubnetId={subnet}");
    let all = api.run(&format!("{launch}&MaxCount=99"));
    assert_eq!(all.len(), 7, "eleven, but for those that are reserved");
    let named = format!("{launch}&MaxCount=1&PrivateIpAddress=10.0.1.9");
    assert_eq!(api.run(&named).len(), 1);
    for wanted in ["10.0.1.3", "10.0.1.9", "10.0.9.9"] {
        let query = format!(
            "RunInstances&ImageId=ami-12345678&{launch}&MaxCount=1&PrivateIpAddress={wanted}"
        );
        assert_eq!(api.code(&query), "InvalidIPAddress.InUse", "{wanted}");
    }
}

#[test]
fn subnets_have_blocks_of_ipv6_within_that_of_their_vpc() {
    let mut api = Client::new();
    let vpc = new_vpc(&mut api);
    let query = format!("AssociateVpcCidrBlock&VpcId={vpc}&AmazonProvidedIpv6CidrBlock=true");
    let block = text(&api.ok(&query), &["Ipv6CidrBlockAssociation", "Ipv6CidrBlock"]);
    assert!(block.starts_with("2001:db8:") && block.ends_with("/56"), "{block}");
    let part = block.replace("/56", "/64");
    let create = |number: u8, block: &str| {
        format!("CreateSubnet&VpcId={vpc}&CidrBlock=10.0.{number}.0/24&Ipv6CidrBlock={block}")
    };
    let made = api.ok(&create(0, &part));
    let own = made.member("Subnet").map(|it| it.list("Ipv6CidrBlockAssociationSet").to_vec());
    assert_eq!(ids(&own.unwrap_or_default(), "Ipv6CidrBlock"), std::slice::from_ref(&part));
    assert_eq!(api.code(&create(1, &part)), "InvalidSubnet.Conflict");
    assert_eq!(api.code(&create(1, "2001:db9::/64")), "InvalidSubnet.Range");
    assert_eq!(api.code(&create(1, &block)), "InvalidSubnet.Range");
}
