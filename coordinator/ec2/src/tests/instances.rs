//! Instances: launches, tokens, limits, stops, bills, pages.

use dormouse_cloud::ResourceVector;
use dormouse_units::{Bytes, Money};

use crate::testing::{Client, ids, setup, text};

const ONE: &str = "InstanceType=c5.large&MinCount=1&MaxCount=1";

#[test]
fn an_instance_boots_runs_and_costs_seconds_but_a_minute_at_least() {
    let mut api = Client::new();
    let launched = api.ok(&format!("RunInstances&ImageId=ami-12345678&{ONE}"));
    let launched = &launched.list("Instances")[0];
    assert_eq!(text(launched, &["StateReason", "Code"]), "pending");
    let id = text(launched, &["InstanceId"]);
    assert_eq!(api.state(&id), "pending");
    api.at(59);
    assert_eq!(api.state(&id), "pending");
    api.at(60);
    assert_eq!(api.state(&id), "running");
    api.at(90);
    let ended = api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    let change = &ended.list("TerminatingInstances")[0];
    assert_eq!(text(change, &["CurrentState", "Name"]), "shutting-down");
    assert_eq!(
        (api.state(&id).as_str(), text(&api.instance(&id), &["StateReason", "Code"])),
        ("terminated", "Client.UserInitiatedShutdown".to_owned())
    );
    let why = text(&api.instance(&id), &["StateTransitionReason"]);
    assert_eq!(why, "User initiated (2026-11-27 00:01:30 GMT)");
    // 30 s are charged as 60 at $0.085 an hour.
    assert_eq!(api.owed(&id), Money::from_nanos(1_416_666));
    api.at(90 + 3_600);
    assert_eq!(
        api.code(&format!("DescribeInstances&InstanceId.1={id}")),
        "InvalidInstanceID.NotFound"
    );
}

#[test]
fn the_same_token_is_the_same_instance() {
    let mut api = Client::new();
    let first = api.run(&format!("{ONE}&ClientToken=tok"));
    api.at(100);
    assert_eq!(api.run(&format!("{ONE}&ClientToken=tok")), first);
    let other = "RunInstances&ImageId=ami-12345678&InstanceType=m5.large&MinCount=1&MaxCount=1&ClientToken=tok";
    assert_eq!(api.code(other), "IdempotentParameterMismatch");
    assert_ne!(api.run(&format!("{ONE}&ClientToken=tok2")), first);
    assert_eq!(api.ok("DescribeInstances").list("Reservations").len(), 2);
}

#[test]
fn a_dry_run_launches_nothing() {
    let mut api = Client::new();
    assert_eq!(
        api.code(&format!("RunInstances&ImageId=ami-12345678&{ONE}&DryRun=true")),
        "DryRunOperation"
    );
    assert!(api.ok("DescribeInstances").list("Reservations").is_empty());
}

#[test]
fn what_cannot_be_had_is_refused_by_its_code() {
    let mut api = Client::new();
    let run = |rest: &str| format!("RunInstances&ImageId=ami-12345678&{rest}");
    for (query, code) in [
        ("InstanceType=c99.large&MinCount=1&MaxCount=1", "InvalidParameterValue"),
        ("InstanceType=c5.large&MinCount=300&MaxCount=300", "VcpuLimitExceeded"),
        ("InstanceType=c5.large&MinCount=2&MaxCount=1", "InvalidParameterValue"),
        ("InstanceType=c5.large&MinCount=1&MaxCount=1&KeyName=none", "InvalidKeyPair.NotFound"),
        (
            "InstanceType=c5.large&MinCount=1&MaxCount=1&Placement.Tenancy=host",
            "UnsupportedOperation",
        ),
        ("InstanceType=c5.large&MinCount=1&MaxCount=1&KernelId=aki-1", "UnsupportedOperation"),
        (
            "InstanceType=c5.large&MinCount=1&MaxCount=1&InstanceMarketOptions.MarketType=spot\
          &InstanceMarketOptions.SpotOptions.MaxPrice=0.0001",
            "SpotMaxPriceTooLow",
        ),
        (
            "InstanceType=m5.large&MinCount=3&MaxCount=3&InstanceMarketOptions.MarketType=spot",
            "InsufficientInstanceCapacity",
        ),
        (
            "InstanceType=c5.large&MinCount=200&MaxCount=200&InstanceMarketOptions.MarketType=spot",
            "MaxSpotInstanceCountExceeded",
        ),
    ] {
        assert_eq!(api.code(&run(query)), code, "{query}");
    }
    assert_eq!(
        api.code("TerminateInstances&InstanceId.1=i-0123456789abcdef0"),
        "InvalidInstanceID.NotFound"
    );
    assert_eq!(api.code("StartInstances&InstanceId.1=x"), "InvalidInstanceID.Malformed");
    assert_eq!(api.code("CreateImage&InstanceId=i-0&Name=n"), "UnsupportedOperation");
    assert!(api.ok("DescribeInstances").list("Reservations").is_empty());
    // As many as can be had, if those are enough.
    assert_eq!(
        api.run(
            "InstanceType=m5.large&MinCount=1&MaxCount=9&InstanceMarketOptions.MarketType=spot"
        )
        .len(),
        2
    );
}

#[test]
fn without_a_host_that_has_room_none_is_launched() {
    // Room for one c5.large.
    let host = ResourceVector::new(3, Bytes::new(5 << 30));
    let mut api = Client::of(setup(), &[host], |_| {});
    let two = "RunInstances&ImageId=ami-12345678&InstanceType=c5.large&MinCount=2&MaxCount=2";
    assert_eq!(api.code(two), "InsufficientInstanceCapacity");
    assert!(api.ok("DescribeInstances").list("Reservations").is_empty());
    assert_eq!(api.run("InstanceType=c5.large&MinCount=1&MaxCount=2").len(), 1);
}

#[test]
fn a_stopped_instance_costs_nothing_and_starts_again() {
    let mut api = Client::new();
    let id = api.run(ONE).remove(0);
    assert_eq!(api.code(&format!("StopInstances&InstanceId.1={id}")), "IncorrectInstanceState");
    api.at(60 + 3_600);
    let addresses = |api: &mut Client| {
        let instance = api.instance(&id);
        ["PrivateIpAddress", "PublicIpAddress"].map(|name| text(&instance, &[name]))
    };
    let [private, public] = addresses(&mut api);
    api.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert_eq!(api.state(&id), "stopped");
    assert_eq!(addresses(&mut api), [private.clone(), String::new()]);
    let hour = Money::from_nanos(85_000_000);
    api.at(20_000);
    assert_eq!(api.owed(&id), hour);
    api.ok(&format!("StartInstances&InstanceId.1={id}"));
    assert_eq!(api.state(&id), "pending");
    api.at(20_060);
    assert_eq!(api.state(&id), "running");
    let [kept, other] = addresses(&mut api);
    assert_eq!(kept, private);
    assert!(other != public && other.starts_with("198."), "{public}, then {other}");
    api.at(20_060 + 7_200);
    assert_eq!(api.owed(&id), hour + hour + hour);
    // It is protected from its end.
    api.ok(&format!("ModifyInstanceAttribute&InstanceId={id}&DisableApiTermination.Value=true"));
    assert_eq!(api.code(&format!("TerminateInstances&InstanceId.1={id}")), "OperationNotPermitted");
}

#[test]
fn instances_are_filtered_and_paged() {
    let mut api = Client::new();
    let mut all = Vec::new();
    for n in 0..12 {
        let kind = if n % 3 == 0 { "m5.large" } else { "c5.large" };
        all.extend(api.run(&format!(
            "InstanceType={kind}&MinCount=1&MaxCount=1&TagSpecification.1.ResourceType=instance\
             &TagSpecification.1.Tag.1.Key=n&TagSpecification.1.Tag.1.Value={n}"
        )));
    }
    let of = |answer: &dormouse_ec2_wire::WireValue| {
        let all = answer.list("Reservations").iter().flat_map(|it| it.list("Instances"));
        ids(&all.cloned().collect::<Vec<_>>(), "InstanceId")
    };
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let page = api.ok(&format!("DescribeInstances&MaxResults=5{token}"));
        seen.extend(of(&page));
        match page.text("NextToken") {
            Some(next) => token = format!("&NextToken={next}"),
            None => break,
        }
    }
    assert_eq!(seen, all);
    let kinds = api.ok("DescribeInstances&Filter.1.Name=instance-type&Filter.1.Value.1=m5.*");
    assert_eq!(of(&kinds).len(), 4);
    let tagged =
        api.ok("DescribeInstances&Filter.1.Name=tag:n&Filter.1.Value.1=7&Filter.1.Value.2=8");
    assert_eq!(of(&tagged), all[7..9]);
    let none =
        api.ok("DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=running");
    assert!(of(&none).is_empty());
    let group = text(&api.instance(&all[0]).list("SecurityGroups")[0], &["GroupId"]);
    for (name, value, count) in [
        ("launch-time", "2026-11-27T00:00:00.000Z", 12),
        ("launch-time", "2026-11-28*", 0),
        ("group-id", group.as_str(), 12),
        ("group-name", "default", 12),
        ("availability-zone-id", "use1-az1", 12),
        ("platform", "windows", 0),
        ("ebs-optimized", "false", 12),
        ("product-code", "*", 0),
        ("state-reason-message", "pend*", 12),
    ] {
        let found =
            api.ok(&format!("DescribeInstances&Filter.1.Name={name}&Filter.1.Value.1={value}"));
        assert_eq!(of(&found).len(), count, "{name}={value}");
    }
    let events = "DescribeInstanceStatus&Filter.1.Name=event.code&Filter.1.Value.1=*";
    assert!(api.ok(events).list("InstanceStatuses").is_empty());
    assert_eq!(
        api.code("DescribeInstances&Filter.1.Name=colour&Filter.1.Value.1=red"),
        "InvalidParameterValue"
    );
}
