use super::*;
use crate::{
    EndpointSettings, InstanceAccess, MaintenanceEvent, MaintenanceState, RoleCredentials,
    TakingAction, TokenSecret, VmAnnouncement,
    facts::tests::{spot_facts, tagged_facts},
    service::tests::{NOW, TAKEN, announce_taken, spot_service},
};

fn get(service: &MetadataService, path: &str) -> (u16, String) {
    let said = answer_ec2(service, &HttpRequest::new(HttpMethod::Get, path), NOW);
    (said.status, said.body)
}

fn body(service: &MetadataService, path: &str) -> String {
    let (status, body) = get(service, path);
    assert_eq!(status, 200, "{path}");
    body
}

fn put(ttl: Option<&str>) -> HttpRequest {
    let request = HttpRequest::new(HttpMethod::Put, "/latest/api/token");
    match ttl {
        Some(ttl) => request.with_header("X-aws-ec2-metadata-token-ttl-seconds", ttl),
        None => request,
    }
}

#[test]
fn a_vm_says_what_it_is() {
    let service = spot_service();
    for (path, value) in [
        ("instance-type", "c5.large"),
        ("instance-life-cycle", "spot"),
        ("placement/availability-zone", "us-east-1a"),
        // As botocore asks for its region.
        ("placement/availability-zone/", "us-east-1a"),
        ("placement/availability-zone-id", "use1-az1"),
        ("placement/region", "us-east-1"),
        ("local-ipv4", "10.0.0.7"),
        ("local-hostname", "ip-10-0-0-7.ec2.internal"),
        ("instance-id", spot_facts().instance_id().as_str()),
        ("events/maintenance/scheduled", "[]"),
    ] {
        assert_eq!(body(&service, &format!("/latest/meta-data/{path}")), value);
    }
    assert_eq!(body(&service, "/2021-07-15/meta-data/instance-type"), "c5.large");
    let document = body(&service, "/latest/dynamic/instance-identity/document");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["pendingTime"], "2026-05-28T20:26:40Z");
    assert_eq!(document["instanceId"], spot_facts().instance_id());
}

#[test]
fn directories_are_listed_without_a_last_newline() {
    let service = spot_service();
    assert!(body(&service, "/").ends_with("\n2022-09-24\nlatest"));
    assert_eq!(body(&service, "/latest/"), "dynamic\nmeta-data");
    assert_eq!(body(&service, "/latest/dynamic/"), "instance-identity/");
    let placement = "availability-zone\navailability-zone-id\nregion";
    assert_eq!(body(&service, "/latest/meta-data/placement/"), placement);
    let all = body(&service, "/latest/meta-data/");
    assert!(all.starts_with("ami-id\n") && all.contains("\nplacement/\n"), "{all}");
    assert!(!all.contains("spot"), "nothing is announced: {all}");
}

#[test]
fn what_is_not_there_is_not_found() {
    let service = spot_service();
    for path in [
        "/latest/meta-data/spot/instance-action",
        "/latest/meta-data/spot/termination-time",
        "/latest/meta-data/events/recommendations/rebalance",
        // As on a VM without a role.
        "/latest/meta-data/iam",
        "/latest/meta-data/iam/",
        "/latest/meta-data/iam/info",
        "/latest/meta-data/iam/security-credentials/",
        "/latest/meta-data/iam/security-credentials/role",
        "/latest/meta-data/public-ipv4",
        "/latest/meta-data/tags/",
        "/latest/meta-data/tags/instance/Name",
        "/latest/user-data",
        "/2099-01-01/meta-data/",
        "/latest/meta-data/instance-id/more",
    ] {
        let (status, page) = get(&service, path);
        assert!(status == 404 && page.contains("<h1>404 - Not Found</h1>"), "{path}: {status}");
    }
}

#[test]
fn tags_and_user_data_are_as_they_were_given() {
    let service = MetadataService::new(
        tagged_facts(),
        EndpointSettings::default(),
        TokenSecret::new([3; 32]),
    );
    assert_eq!(body(&service, "/latest/"), "dynamic\nmeta-data\nuser-data");
    assert!(body(&service, "/latest/meta-data/").ends_with("\nsystem\ntags/"));
    assert_eq!(body(&service, "/latest/meta-data/tags/instance/"), "Name\nteam");
    assert_eq!(body(&service, "/latest/meta-data/tags/instance/team"), "weather");
    assert_eq!(get(&service, "/latest/meta-data/tags/instance/none").0, 404);
    let ask = HttpRequest::new(HttpMethod::Get, "/latest/user-data");
    let said = answer_ec2(&service, &ask, NOW);
    assert_eq!(said.content_type, "application/octet-stream");
    assert_eq!(said.body, "#!/bin/sh\necho hello\n");
}

#[test]
fn security_groups_are_the_default_one_or_those_of_the_instance_now() {
    let mut service = spot_service();
    let groups = "/latest/meta-data/security-groups";
    assert_eq!(body(&service, groups), "default");
    let names = ["open", "inner"].map(str::to_owned);
    service.announce_event(VmAnnouncement::SecurityGroups(names.to_vec()));
    assert_eq!(body(&service, groups), "open\ninner");
}

#[test]
fn keys_addresses_and_roles_are_shown_where_an_instance_has_them() {
    let text = |text: &str| text.to_owned();
    let role = RoleCredentials {
        name: text("manager"),
        profile: text("arn:aws:iam::123456789012:instance-profile/manager"),
        access_key: text("ASIA1"),
        secret: text("hidden"),
        token: text("t"),
    };
    let access = InstanceAccess {
        public_address: Some(std::net::Ipv4Addr::new(127, 80, 0, 4)),
        public_key: Some((text("laptop"), text("ssh-ed25519 AAAA"))),
        role: Some(role),
    };
    let facts = crate::VmFacts { access, ..spot_facts() };
    assert!(!format!("{facts:?}").contains("hidden"), "{facts:?}");
    let settings = EndpointSettings::default();
    let service = MetadataService::new(facts, settings, TokenSecret::new([3; 32]));
    for (path, value) in [
        ("public-ipv4", "127.80.0.4"),
        ("public-keys/", "0=laptop"),
        ("public-keys/0/", "openssh-key"),
        ("public-keys/0/openssh-key", "ssh-ed25519 AAAA"),
        ("iam/", "info\nsecurity-credentials/"),
        ("iam/security-credentials/", "manager"),
    ] {
        assert_eq!(body(&service, &format!("/latest/meta-data/{path}")), value, "{path}");
    }
    let path = "/latest/meta-data/iam/security-credentials/manager";
    let said = answer_ec2(&service, &HttpRequest::new(HttpMethod::Get, path), NOW);
    let read: serde_json::Value = serde_json::from_str(&said.body).expect("JSON");
    assert_eq!((said.content_type, read["Code"].as_str()), ("text/plain", Some("Success")));
    assert_eq!(
        (&read["AccessKeyId"], &read["SecretAccessKey"]),
        (&"ASIA1".into(), &"hidden".into())
    );
    assert_eq!((&read["Token"], &read["LastUpdated"]), (&"t".into(), &NOW.iso_text().into()));
    assert_eq!(read["Expiration"], "2026-06-09T16:13:20Z");
    let info: serde_json::Value =
        serde_json::from_str(&body(&service, "/latest/meta-data/iam/info")).expect("JSON");
    assert!(info["InstanceProfileArn"].as_str().is_some_and(|arn| arn.ends_with("/manager")));
    let all = body(&service, "/latest/meta-data/");
    assert!(all.contains("\niam/\n") && all.contains("\npublic-keys/\n"), "{all}");
}

#[test]
fn maintenance_is_scheduled_until_it_is_over() {
    let mut service = spot_service();
    let at = |seconds: u64| UnixTime::from_micros(NOW.as_micros() + seconds * 1_000_000);
    let event = |state| {
        VmAnnouncement::Maintenance(MaintenanceEvent {
            code: "system-reboot".to_owned(),
            state,
            not_before: at(0),
            not_after: at(86_400),
            deadline: at(172_800),
        })
    };
    let list = |service: &MetadataService, of: &str| {
        let path = format!("/latest/meta-data/events/maintenance/{of}");
        serde_json::from_str::<serde_json::Value>(&body(service, &path)).expect("JSON")
    };
    service.announce_event(event(MaintenanceState::Active));
    let scheduled = list(&service, "scheduled");
    assert_eq!(scheduled[0]["Code"], "system-reboot");
    assert_eq!(scheduled[0]["State"], "active");
    assert_eq!(scheduled[0]["NotBefore"], "9 Jun 2026 10:13:20 GMT");
    assert_eq!(list(&service, "history"), serde_json::json!([]));
    service.announce_event(event(MaintenanceState::Canceled));
    let history = list(&service, "history");
    assert_eq!(history, list(&service, "scheduled"));
    assert_eq!(history[0]["Description"], "[Canceled] scheduled system-reboot");
    assert_eq!(history[0]["EventId"], scheduled[0]["EventId"]);
}

#[test]
fn a_termination_is_announced_in_both_forms() {
    let mut service = spot_service();
    service.announce_event(announce_taken(TakingAction::Terminate));
    let action = "/latest/meta-data/spot/instance-action";
    let said = answer_ec2(&service, &HttpRequest::new(HttpMethod::Get, action), NOW);
    assert_eq!(said.content_type, "application/json");
    assert_eq!(said.body, r#"{"action":"terminate","time":"2026-06-09T22:13:20Z"}"#);
    assert_eq!(body(&service, "/latest/meta-data/spot/termination-time"), TAKEN.iso_text());
    assert_eq!(body(&service, "/latest/meta-data/spot"), "instance-action\ntermination-time");
}

#[test]
fn a_hibernation_has_no_time_of_termination() {
    let mut service = spot_service();
    service.announce_event(announce_taken(TakingAction::Hibernate));
    let action = body(&service, "/latest/meta-data/spot/instance-action");
    assert_eq!(action, r#"{"action":"hibernate","time":"2026-06-09T22:13:20Z"}"#);
    assert_eq!(get(&service, "/latest/meta-data/spot/termination-time").0, 404);
}

#[test]
fn a_recommendation_says_since_when() {
    let mut service = spot_service();
    service.announce_event(VmAnnouncement::Rebalance(NOW));
    service.announce_event(VmAnnouncement::Rebalance(TAKEN));
    let said = body(&service, "/latest/meta-data/events/recommendations/rebalance");
    assert_eq!(said, r#"{"noticeTime":"2026-06-09T10:13:20Z"}"#);
}

#[test]
fn a_token_opens_what_needs_one_while_it_lasts() {
    let mut service = spot_service();
    service.settings = EndpointSettings { tokens: TokenRule::Required };
    let said = answer_ec2(&service, &put(Some("60")), NOW);
    assert_eq!((said.status, said.find_header(TTL_OUT)), (200, Some("60")));
    let ask = HttpRequest::new(HttpMethod::Get, "/latest/meta-data/instance-type");
    assert_eq!(answer_ec2(&service, &ask, NOW).status, 401);
    let with = |token: &str| ask.clone().with_header("X-aws-ec2-metadata-token", token);
    let after = |seconds: u64| UnixTime::from_micros(NOW.as_micros() + seconds * 1_000_000);
    let said_then = answer_ec2(&service, &with(&said.body), after(10));
    assert_eq!((said_then.status, said_then.find_header(TTL_OUT)), (200, Some("50")));
    assert_eq!(answer_ec2(&service, &with(&said.body), after(60)).status, 401);
    assert_eq!(answer_ec2(&service, &with("made up"), NOW).status, 401);
}

#[test]
fn a_wrong_token_is_refused_where_none_is_needed() {
    let ask = HttpRequest::new(HttpMethod::Get, "/latest/meta-data/");
    let ask = ask.with_header("X-aws-ec2-metadata-token", "made up");
    assert_eq!(answer_ec2(&spot_service(), &ask, NOW).status, 401);
}

#[test]
fn tokens_are_given_out_as_ec2_does() {
    let service = spot_service();
    for (request, status) in [
        (put(Some("1")), 200),
        (put(Some("21600")), 200),
        (put(Some("0")), 400),
        (put(Some("21601")), 400),
        (put(Some("soon")), 400),
        (put(None), 400),
        (put(Some("60")).with_header("X-Forwarded-For", "10.0.0.1"), 403),
        (HttpRequest::new(HttpMethod::Get, "/latest/api/token"), 405),
        (HttpRequest::new(HttpMethod::Put, "/latest/meta-data/"), 405),
    ] {
        assert_eq!(answer_ec2(&service, &request, NOW).status, status, "{request:?}");
    }
}
