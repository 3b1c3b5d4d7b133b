//! Spot requests and spot instances: prices, capacity, interruptions, and what they cost.

use dormouse_cloud::{Interruption, InterruptionAction, InterruptionModel, InterruptionTarget};
use dormouse_units::{Money, Time, TypeName};

use crate::AnnouncedChange;
use crate::testing::{BEGINS, Client, text};

const SPOT: &str =
    "InstanceType=c5.large&MinCount=1&MaxCount=1&InstanceMarketOptions.MarketType=spot";
const OPTIONS: &str = "InstanceMarketOptions.SpotOptions";

#[test]
fn an_instance_that_is_outbid_in_its_first_hour_is_free() {
    let mut api = Client::new();
    api.at(1_800);
    let id = api.run(&format!("{SPOT}&{OPTIONS}.MaxPrice=0.05")).remove(0);
    let request = text(&api.instance(&id), &["SpotInstanceRequestId"]);
    api.at(3_599);
    assert_eq!(api.status(&request), ("active".to_owned(), "fulfilled".to_owned()));
    assert!(api.owed(&id) > Money::ZERO, "so far it is charged");
    // The price rises: two minutes of notice.
    api.at(3_600);
    assert_eq!(api.status(&request).1, "marked-for-termination");
    assert_eq!(api.state(&id), "running");
    api.at(3_720);
    assert_eq!(api.state(&id), "terminated");
    assert_eq!(
        text(&api.instance(&id), &["StateReason", "Code"]),
        "Server.SpotInstanceTermination"
    );
    let closed = ("closed".to_owned(), "instance-terminated-by-price".to_owned());
    assert_eq!((api.status(&request), api.owed(&id)), (closed, Money::ZERO));
}

#[test]
fn an_instance_that_is_outbid_later_is_charged_by_the_second() {
    let mut api = Client::new();
    // It runs from the minute on: 3,540 s until the price rises, and 120 s of notice at no more than it pays at most.
    let id = api.run(&format!("{SPOT}&{OPTIONS}.MaxPrice=0.05")).remove(0);
    api.at(4_000);
    assert_eq!(api.state(&id), "terminated");
    let owed = 30_000_000 * 3_540 / 3_600 + 50_000_000_i64 * 120 / 3_600;
    assert_eq!(api.owed(&id), Money::from_nanos(owed));
}

#[test]
fn a_request_below_the_price_waits_for_another() {
    let mut api = Client::new();
    api.at(3_700);
    let id = api.request("LaunchSpecification.InstanceType=c5.large&SpotPrice=0.05");
    let waits = ("open".to_owned(), "price-too-low".to_owned());
    assert_eq!(api.status(&id), waits);
    api.at(7_199);
    assert_eq!(api.status(&id), waits);
    api.at(7_200);
    assert_eq!(api.status(&id), ("active".to_owned(), "fulfilled".to_owned()));
    let instance = text(&api.spot_request(&id), &["InstanceId"]);
    assert_eq!(api.state(&instance), "pending");
}

#[test]
fn a_persistent_request_asks_again() {
    let mut api = Client::new();
    let id =
        api.request("LaunchSpecification.InstanceType=c5.large&SpotPrice=0.05&Type=persistent");
    let first = text(&api.spot_request(&id), &["InstanceId"]);
    api.at(4_000);
    assert_eq!(api.status(&id), ("open".to_owned(), "price-too-low".to_owned()));
    api.at(7_260);
    assert_eq!(api.status(&id), ("active".to_owned(), "fulfilled".to_owned()));
    let second = text(&api.spot_request(&id), &["InstanceId"]);
    assert_ne!(first, second);
    assert_eq!(api.state(&second), "running");
    // Its user ends the instance: a new one comes, unless the request is cancelled before.
    api.ok(&format!("TerminateInstances&InstanceId.1={second}"));
    let third = text(&api.spot_request(&id), &["InstanceId"]);
    assert_ne!(second, third);
    api.ok(&format!("CancelSpotInstanceRequests&SpotInstanceRequestId.1={id}"));
    assert_eq!(
        api.status(&id),
        ("cancelled".to_owned(), "request-canceled-and-instance-running".to_owned())
    );
    api.ok(&format!("TerminateInstances&InstanceId.1={third}"));
    assert_eq!(api.status(&id), ("cancelled".to_owned(), "instance-terminated-by-user".to_owned()));
    let expires = api.request(
        "LaunchSpecification.InstanceType=c5.large&SpotPrice=0.001&ValidUntil=2026-11-27T03:00:00Z",
    );
    api.at(10_799);
    assert_eq!(api.status(&expires).0, "open");
    api.at(10_800);
    assert_eq!(api.status(&expires), ("closed".to_owned(), "schedule-expired".to_owned()));
}

#[test]
fn a_cancelled_request_stays_cancelled() {
    let mut api = Client::new();
    let id = api.request("LaunchSpecification.InstanceType=c5.large&Type=persistent");
    let instance = text(&api.spot_request(&id), &["InstanceId"]);
    api.at(60);
    api.ok(&format!("CancelSpotInstanceRequests&SpotInstanceRequestId.1={id}"));
    api.ok(&format!("StopInstances&InstanceId.1={instance}"));
    assert_eq!(api.status(&id), ("cancelled".to_owned(), "instance-stopped-by-user".to_owned()));
    let start = format!("StartInstances&InstanceId.1={instance}");
    assert_eq!(api.code(&start), "IncorrectSpotRequestState");
    api.ok(&format!("TerminateInstances&InstanceId.1={instance}"));
    api.at(600);
    assert_eq!(api.status(&id), ("cancelled".to_owned(), "instance-terminated-by-user".to_owned()));
    assert_eq!(text(&api.spot_request(&id), &["InstanceId"]), instance);
    assert_eq!(api.session.bills().len(), 1, "no instance comes after the first");
}

#[test]
fn a_one_time_request_is_valid_for_a_week() {
    let mut api = Client::new();
    let week = 7 * 86_400;
    let cheap = "LaunchSpecification.InstanceType=c5.large&SpotPrice=0.001";
    let [once, persistent] =
        ["one-time", "persistent"].map(|kind| api.request(&format!("{cheap}&Type={kind}")));
    let until = i64::try_from(week).expect("a week") * 1_000_000 + BEGINS;
    assert_eq!(api.spot_request(&once).instant("ValidUntil"), Some(until));
    assert_eq!(api.spot_request(&persistent).instant("ValidUntil"), None);
    let by_filter = |name: &str, value: &str| {
        format!("DescribeSpotInstanceRequests&Filter.1.Name={name}&Filter.1.Value.1={value}")
    };
    let groups = api.ok("DescribeSecurityGroups");
    let group = text(&groups.list("SecurityGroups")[0], &["GroupId"]);
    for (name, value, count) in [
        ("valid-until", "2026-12-04*", 1),
        ("create-time", "2026-11-27T00:00:00.000Z", 2),
        ("launch.group-id", group.as_str(), 2),
        ("launch.group-name", "other", 0),
        ("fault-code", "*", 0),
    ] {
        let found = api.ok(&by_filter(name, value));
        assert_eq!(found.list("SpotInstanceRequests").len(), count, "{name}");
    }
    api.at(week - 1);
    assert_eq!(api.status(&once).0, "open");
    api.at(week);
    assert_eq!(api.status(&once), ("closed".to_owned(), "schedule-expired".to_owned()));
    assert_eq!(api.status(&persistent).0, "open");
}

#[test]
fn capacity_is_taken_back_and_given_again() {
    let mut api = Client::new();
    let all: Vec<String> = (0..3)
        .map(|_| api.request("LaunchSpecification.InstanceType=m5.large&Type=persistent"))
        .collect();
    assert_eq!(api.status(&all[2]), ("open".to_owned(), "capacity-not-available".to_owned()));
    api.at(10_920);
    for id in &all {
        assert_eq!(api.status(id), ("open".to_owned(), "capacity-not-available".to_owned()));
    }
    api.at(14_400);
    for id in &all {
        assert_eq!(api.status(id).0, "active");
    }
}

#[test]
fn a_hibernated_instance_costs_nothing_and_resumes_when_the_price_falls() {
    let mut api = Client::new();
    let one_time = format!(
        "RunInstances&ImageId=ami-12345678&{SPOT}&{OPTIONS}.InstanceInterruptionBehavior=hibernate"
    );
    assert_eq!(api.code(&one_time), "InvalidParameterCombination");
    let id = api.request(
        "LaunchSpecification.InstanceType=c5.large&SpotPrice=0.05&Type=persistent&InstanceInterruptionBehavior=hibernate",
    );
    let instance = text(&api.spot_request(&id), &["InstanceId"]);
    api.at(60);
    let address = text(&api.instance(&instance), &["PublicIpAddress"]);
    // Only EC2 hibernates it.
    assert_eq!(
        api.code(&format!("StopInstances&InstanceId.1={instance}&Hibernate=true")),
        "UnsupportedOperation"
    );
    // At once, without a notice; in its first hour it is free.
    api.at(3_600);
    assert_eq!(api.state(&instance), "stopped");
    assert_eq!(api.status(&id), ("disabled".to_owned(), "instance-stopped-by-price".to_owned()));
    assert_eq!(
        api.code(&format!("StartInstances&InstanceId.1={instance}")),
        "IncorrectSpotRequestState"
    );
    api.at(7_199);
    assert_eq!((api.state(&instance).as_str(), api.owed(&instance)), ("stopped", Money::ZERO));
    api.at(7_200);
    assert_eq!(api.state(&instance), "running");
    assert_ne!(text(&api.instance(&instance), &["PublicIpAddress"]), address);
    assert_eq!(api.status(&id), ("active".to_owned(), "fulfilled".to_owned()));
    api.at(7_200 + 7_200);
    assert_eq!(api.owed(&instance), Money::from_nanos(60_000_000));
}

#[test]
fn a_stopped_one_is_started_again_by_ec2_and_by_its_user_only_where_the_user_stopped_it() {
    let mut api = Client::new();
    let id = api.request(
        "LaunchSpecification.InstanceType=c5.large&SpotPrice=0.05&Type=persistent&InstanceInterruptionBehavior=stop",
    );
    let instance = text(&api.spot_request(&id), &["InstanceId"]);
    api.at(3_600);
    assert_eq!(
        (api.state(&instance).as_str(), api.status(&id).1.as_str()),
        ("running", "marked-for-stop")
    );
    api.at(3_720);
    assert_eq!(api.state(&instance), "stopped");
    assert_eq!(api.status(&id), ("disabled".to_owned(), "instance-stopped-by-price".to_owned()));
    // 61 minutes in all: not free.
    let owed = Money::from_nanos(30_000_000 * 3_540 / 3_600 + 50_000_000_i64 * 120 / 3_600);
    assert_eq!(api.owed(&instance), owed);
    api.at(7_200);
    let pending = api.instance(&instance);
    assert_eq!(text(&pending, &["StateReason", "Code"]), "pending", "no longer EC2's reason");
    assert_eq!(text(&pending, &["StateTransitionReason"]), "");
    api.at(7_260);
    assert_eq!((api.state(&instance).as_str(), api.status(&id).0.as_str()), ("running", "active"));
    api.ok(&format!("StopInstances&InstanceId.1={instance}"));
    assert_eq!(api.status(&id), ("disabled".to_owned(), "instance-stopped-by-user".to_owned()));
    api.at(9_000);
    assert_eq!(api.state(&instance), "stopped");
    api.ok(&format!("StartInstances&InstanceId.1={instance}"));
    api.at(9_060);
    assert_eq!((api.state(&instance).as_str(), api.status(&id).0.as_str()), ("running", "active"));
    api.ok(&format!("StopInstances&InstanceId.1={instance}"));
    // A stopped instance ends with its request.
    api.ok(&format!("CancelSpotInstanceRequests&SpotInstanceRequestId.1={id}"));
    assert_eq!(
        (api.state(&instance).as_str(), api.status(&id).0.as_str()),
        ("terminated", "cancelled")
    );
    let one_time = api.run(SPOT).remove(0);
    api.at(9_200);
    assert_eq!(api.code(&format!("StopInstances&InstanceId.1={one_time}")), "UnsupportedOperation");
}

#[test]
fn a_law_that_hibernates_ends_what_its_user_wants_ended() {
    let target = || InterruptionTarget::Type(TypeName::from("c5.large"));
    let act = |at, action| Interruption { at: Time::from_secs(at), target: target(), action };
    let acts =
        vec![act(1_000, InterruptionAction::Hibernate), act(2_000, InterruptionAction::Resume)];
    let mut api = Client::with_laws(vec![InterruptionModel::Schedule { acts }]);
    let ends = api.run(SPOT).remove(0);
    let sleeps = api.request(
        "LaunchSpecification.InstanceType=c5.large&Type=persistent&InstanceInterruptionBehavior=hibernate",
    );
    let sleeper = text(&api.spot_request(&sleeps), &["InstanceId"]);
    api.at(1_000);
    assert_eq!((api.state(&ends).as_str(), api.state(&sleeper).as_str()), ("running", "stopped"));
    api.at(1_120);
    assert_eq!(api.state(&ends), "terminated");
    // The law has it sleep until it wakes it.
    api.at(1_999);
    assert_eq!(api.state(&sleeper), "stopped");
    api.at(2_000);
    assert_eq!(api.state(&sleeper), "running");
    // Somebody interrupts it on purpose: it hibernates, and as the law will not wake it, it sleeps on.
    assert!(api.session.interrupt(&sleeper, "to see"));
    assert_eq!(api.state(&sleeper), "stopped");
    assert!(!api.session.interrupt(&ends, "it is gone"));
}

#[test]
fn the_price_history_is_the_record_newest_first_with_the_price_before() {
    let mut api = Client::new();
    api.at(86_400);
    let of = |answer: &dormouse_ec2_wire::WireValue| {
        let rows = answer.list("SpotPriceHistory").iter();
        rows.map(|row| {
            (
                row.text("SpotPrice").unwrap_or_default().to_owned(),
                (row.instant("Timestamp").unwrap_or(0) - BEGINS) / 1_000_000,
            )
        })
        .collect::<Vec<_>>()
    };
    let row = |price: &str, at| (price.to_owned(), at);
    let part_of =
        |start: &str| format!("DescribeSpotPriceHistory&InstanceType.1=c5.large&StartTime={start}");
    let mut early = Client::new();
    early.at(1_800);
    let of_future = early.ok(&part_of("2026-11-27T02:30:00Z"));
    assert_eq!(of(&of_future), [row("0.030000", 0)], "changes to come are not seen");
    let all =
        api.ok("DescribeSpotPriceHistory&InstanceType.1=c5.large&StartTime=2026-11-27T00:00:00Z");
    assert_eq!(of(&all), [row("0.030000", 7_200), row("0.060000", 3_600), row("0.030000", 0)]);
    let now = "DescribeSpotPriceHistory&InstanceType.1=c5.large&StartTime=2026-11-28T00:00:00Z";
    assert_eq!(of(&api.ok(now)), [row("0.030000", 7_200)], "the present price");
    assert_eq!(of(&api.ok("DescribeSpotPriceHistory&InstanceType.1=c5.large")), of(&all));
    let part = api.ok("DescribeSpotPriceHistory&InstanceType.1=c5.large&StartTime=2026-11-27T01:30:00Z&EndTime=2026-11-27T01:40:00Z");
    assert_eq!(of(&part), [row("0.060000", 3_600)], "the change before StartTime");
    let reversed = part_of("2026-11-27T01:50:00Z&EndTime=2026-11-27T01:40:00Z");
    assert_eq!(of(&api.ok(&reversed)), [row("0.060000", 3_600)], "the price at the end");
    let ahead = part_of("2026-11-28T00:00:05Z");
    assert_eq!(of(&api.ok(&ahead)), [row("0.030000", 7_200)], "a client whose clock is ahead");
    let by_time = "&Filter.1.Name=timestamp&Filter.1.Value.1=2026-11-27T01*";
    let by_time = part_of(&format!("2026-11-27T00:00:00Z{by_time}"));
    assert_eq!(of(&api.ok(&by_time)), [row("0.060000", 3_600)]);
    let mut pages = Vec::new();
    let mut token = String::new();
    loop {
        let page = api.ok(&format!(
            "DescribeSpotPriceHistory&InstanceType.1=c5.large&StartTime=2026-11-27T00:00:00Z&MaxResults=1{token}"
        ));
        pages.extend(of(&page));
        api.session.advance_to(api.session.now() + dormouse_units::Span::from_secs(60));
        match page.text("NextToken") {
            Some("") | None => break,
            Some(next) => token = format!("&NextToken={next}"),
        }
    }
    assert_eq!(pages, of(&all));
}

#[test]
fn what_becomes_of_an_instance_is_told() {
    let mut api = Client::new();
    let id = api
        .run(
            "InstanceType=c5.large&MinCount=1&MaxCount=1&InstanceMarketOptions.MarketType=spot\
              &InstanceMarketOptions.SpotOptions.MaxPrice=0.05",
        )
        .remove(0);
    // The price rises at an hour; two minutes later the instance is gone.
    api.at(3_719);
    let told = api.session.announced(0);
    assert!(told.iter().all(|one| one.instance == id && one.zone == "us-east-1a"), "{told:?}");
    let changes: Vec<_> =
        told.iter().map(|one| (one.at.as_micros() / 1_000_000, one.change)).collect();
    assert_eq!(
        changes,
        [
            (0, AnnouncedChange::State("pending")),
            (60, AnnouncedChange::State("running")),
            (3_600, AnnouncedChange::Interruption("terminate")),
        ]
    );
    api.at(3_720);
    let last = api.session.announced(3);
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].change, AnnouncedChange::State("terminated"));
}
