use super::*;
use crate::{
    EndpointSettings, TokenSecret, VmAnnouncement,
    facts::tests::tagged_facts,
    service::tests::{announce_taken, spot_service},
};

const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

fn ask(method: HttpMethod, target: &str) -> HttpRequest {
    HttpRequest::new(method, target).with_header("Metadata", "true")
}

fn read(service: &mut MetadataService, target: &str) -> Value {
    let said = answer_azure(service, &ask(HttpMethod::Get, target));
    assert_eq!(said.status, 200, "{target}: {}", said.body);
    serde_json::from_str(&said.body).expect("JSON")
}

fn approval(id: &str) -> HttpRequest {
    let body = json!({ "StartRequests": [{ "EventId": id }] }).to_string().into_bytes();
    HttpRequest { body, ..ask(HttpMethod::Post, EVENTS) }
}

#[test]
fn nothing_is_scheduled_at_first() {
    let document = read(&mut spot_service(), EVENTS);
    assert_eq!(document, json!({ "DocumentIncarnation": 1, "Events": [] }));
}

#[test]
fn a_preemption_is_scheduled_and_approved() {
    let mut service = spot_service();
    service.announce_event(announce_taken(TakingAction::Terminate));
    let document = read(&mut service, EVENTS);
    assert_eq!(document["DocumentIncarnation"], 2);
    let event = &document["Events"][0];
    assert_eq!(event["EventType"], "Preempt");
    assert_eq!(event["EventStatus"], "Scheduled");
    assert_eq!(event["NotBefore"], "Tue, 09 Jun 2026 22:13:20 GMT");
    assert_eq!(event["Resources"], json!(["ip-10-0-0-7"]));
    let id = event["EventId"].as_str().expect("an id");
    assert_eq!(answer_azure(&mut service, &approval("another")).status, 404);
    assert_eq!(answer_azure(&mut service, &approval(id)).status, 200);
    let document = read(&mut service, EVENTS);
    assert_eq!(document["DocumentIncarnation"], 3);
    let event = &document["Events"][0];
    assert_eq!((&event["EventStatus"], &event["NotBefore"]), (&json!("Started"), &json!("")));
    service.announce_event(VmAnnouncement::Resumed);
    assert_eq!(read(&mut service, EVENTS)["Events"], json!([]));
}

#[test]
fn a_hibernation_is_a_freeze() {
    let mut service = spot_service();
    service.announce_event(announce_taken(TakingAction::Hibernate));
    assert_eq!(read(&mut service, EVENTS)["Events"][0]["EventType"], "Freeze");
}

#[test]
fn an_instance_says_what_it_is() {
    let mut service = spot_service();
    let at = |path: &str| format!("/metadata/instance{path}?api-version=2021-02-01");
    let all = read(&mut service, &at(""));
    assert_eq!(all["compute"]["vmSize"], "c5.large");
    assert_eq!(all["compute"]["priority"], "Spot");
    let address = "/network/interface/0/ipv4/ipAddress/0/privateIpAddress";
    let text = format!("{}&format=text", at(address));
    assert_eq!(answer_azure(&mut service, &ask(HttpMethod::Get, &text)).body, "10.0.0.7");
    let nothing = answer_azure(&mut service, &ask(HttpMethod::Get, &at("/compute/nothing")));
    assert_eq!(nothing.status, 404);
}

/// Azure's own samples request the newest version; a real VM of July 2025 names these three versions in its answer to a
/// request without one.
#[test]
fn versions_are_those_of_a_vm_of_2025() {
    let mut service = spot_service();
    for version in INSTANCE_VERSIONS {
        let all = read(&mut service, &format!("/metadata/instance?api-version={version}"));
        assert_eq!(all["compute"]["vmSize"], "c5.large", "{version}");
    }
    for version in EVENT_VERSIONS {
        read(&mut service, &format!("/metadata/scheduledevents?api-version={version}"));
    }
    let refused = answer_azure(&mut service, &ask(HttpMethod::Get, "/metadata/instance"));
    let said: Value = serde_json::from_str(&refused.body).expect("JSON");
    assert_eq!(said["newest-versions"], json!(["2025-04-07", "2024-07-17", "2024-03-15"]));
    let listed = read(&mut service, "/metadata/versions");
    assert_eq!(listed["apiVersions"][0], "2017-03-01");
    assert!(INSTANCE_VERSIONS.is_sorted() && EVENT_VERSIONS.is_sorted());
}

#[test]
fn a_version_has_what_came_with_it_and_before() {
    let mut service = spot_service();
    for (version, has, has_not) in [
        ("2017-03-01", "platformFaultDomain", "tags"),
        ("2017-08-01", "tags", "zone"),
        ("2019-06-01", "resourceId", "tagsList"),
        ("2020-12-01", "priority", "userData"),
        ("2023-07-01", "host", "physicalZone"),
        ("2025-04-07", "physicalZone", "storage"),
    ] {
        let all = read(&mut service, &format!("/metadata/instance/compute?api-version={version}"));
        assert!(all.get(has).is_some() && all.get(has_not).is_none(), "{version}: {all}");
    }
    service.announce_event(announce_taken(TakingAction::Terminate));
    let mut event = |version: &str| {
        let events =
            read(&mut service, &format!("/metadata/scheduledevents?api-version={version}"));
        events["Events"][0].clone()
    };
    assert_eq!(event("2017-08-01"), Value::Null, "it has no evictions");
    assert_eq!(event("2017-11-01").get("Description"), None);
    assert_eq!(event("2019-08-01")["EventSource"], "Platform");
    assert_eq!(event("2019-08-01").get("DurationInSeconds"), None);
    assert_eq!(event("2020-07-01")["DurationInSeconds"], -1);
}

#[test]
fn tags_and_user_data_are_in_the_form_of_azure() {
    let mut service = MetadataService::new(
        tagged_facts(),
        EndpointSettings::default(),
        TokenSecret::new([3; 32]),
    );
    let all = read(&mut service, "/metadata/instance/compute?api-version=2025-04-07");
    assert_eq!(all["tags"], "Name:worker-7;team:weather");
    assert_eq!(all["tagsList"][1], json!({ "name": "team", "value": "weather" }));
    assert_eq!(all["userData"], "IyEvYmluL3NoCmVjaG8gaGVsbG8K");
}

#[test]
fn requests_have_a_header_and_a_version() {
    let mut service = spot_service();
    let broken = HttpRequest { body: b"{}".to_vec(), ..ask(HttpMethod::Post, EVENTS) };
    for (request, status) in [
        (HttpRequest::new(HttpMethod::Get, EVENTS), 400),
        (ask(HttpMethod::Get, EVENTS).with_header("X-Forwarded-For", "10.0.0.1"), 400),
        (ask(HttpMethod::Get, "/metadata/scheduledevents"), 400),
        (ask(HttpMethod::Get, "/metadata/scheduledevents?api-version=1999-01-01"), 400),
        (ask(HttpMethod::Put, EVENTS), 405),
        (broken, 400),
        (ask(HttpMethod::Get, "/metadata/nothing?api-version=2021-02-01"), 404),
    ] {
        assert_eq!(answer_azure(&mut service, &request).status, status, "{request:?}");
    }
}
