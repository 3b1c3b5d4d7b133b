use super::*;
use crate::{
    HttpMethod, TakingAction, UnixTime, VmPlace,
    facts::tests::{spot_facts, tagged_facts},
    service::tests::{announce_taken, spot_service},
};

fn ask(path: &str) -> HttpRequest {
    HttpRequest::new(HttpMethod::Get, &format!("/computeMetadata/v1/{path}"))
        .with_header(FLAVOR, GOOGLE)
}

fn said(service: &MetadataService, request: &HttpRequest) -> HttpResponse {
    match answer_google(service, request) {
        ServiceAnswer::Now(said) => said,
        later @ ServiceAnswer::Later { .. } => panic!("{later:?}"),
    }
}

fn body(service: &MetadataService, path: &str) -> String {
    let said = said(service, &ask(path));
    assert_eq!(said.status, 200, "{path}: {}", said.body);
    assert_eq!(said.find_header(FLAVOR_OUT), Some(GOOGLE));
    said.body
}

#[test]
fn an_instance_says_what_it_is() {
    let mut service = spot_service();
    service.facts.place = VmPlace::of_zone("us-central1-a");
    for (path, value) in [
        ("instance/preempted", "FALSE"),
        ("instance/maintenance-event", "NONE"),
        ("instance/machine-type", "projects/100000000000/machineTypes/c5.large"),
        ("instance/zone", "projects/100000000000/zones/us-central1-a"),
        ("instance/scheduling/preemptible", "TRUE"),
        ("instance/id", spot_facts().google_id().to_string().as_str()),
        ("instance/scheduling/", "automatic-restart\non-host-maintenance\npreemptible\n"),
        ("", "instance/\nproject/\n"),
    ] {
        assert_eq!(body(&service, path), value);
    }
}

#[test]
fn tags_and_user_data_are_attributes() {
    let mut service = spot_service();
    service.facts = tagged_facts();
    assert_eq!(body(&service, "instance/attributes/"), "Name\nteam\nuser-data\n");
    assert_eq!(body(&service, "instance/attributes/team"), "weather");
    assert_eq!(body(&service, "instance/attributes/user-data"), "#!/bin/sh\necho hello\n");
}

#[test]
fn who_does_not_mean_google_is_refused() {
    let service = spot_service();
    let bare = HttpRequest::new(HttpMethod::Get, "/computeMetadata/v1/instance/id");
    assert_eq!(said(&service, &bare).status, 403);
    assert_eq!(said(&service, &bare.with_header("X-Google-Metadata-Request", "True")).status, 200);
    let forwarded = ask("instance/id").with_header("X-Forwarded-For", "10.0.0.1");
    assert_eq!(said(&service, &forwarded).status, 403);
    assert_eq!(said(&service, &ask("instance/nothing")).status, 404);
    let root = HttpRequest::new(HttpMethod::Get, "/").with_header(FLAVOR, GOOGLE);
    assert_eq!(said(&service, &root).body, "computeMetadata/\n");
}

#[test]
fn a_directory_has_a_slash() {
    let said = said(&spot_service(), &ask("instance"));
    let to = said.find_header("Location");
    assert_eq!((said.status, to), (301, Some("/computeMetadata/v1/instance/")));
}

#[test]
fn all_under_a_directory_is_json() {
    let service = spot_service();
    let all: Value =
        serde_json::from_str(&body(&service, "instance/?recursive=true")).expect("JSON");
    assert_eq!(all["maintenanceEvent"], "NONE");
    assert_eq!(all["scheduling"]["preemptible"], "TRUE");
    assert_eq!(all["networkInterfaces"][0]["ip"], "10.0.0.7");
    assert_eq!(all["id"], spot_facts().google_id());
    assert_eq!(all["attributes"], serde_json::json!({}));
    let lines = body(&service, "instance/scheduling/?recursive=true&alt=text");
    assert_eq!(lines, "automatic-restart FALSE\non-host-maintenance TERMINATE\npreemptible TRUE\n");
    assert_eq!(body(&service, "instance/preempted?alt=json"), "\"FALSE\"");
}

#[test]
fn who_waits_is_answered_once_it_is_preempted() {
    let mut service = spot_service();
    let request = ask("instance/preempted?wait_for_change=true&timeout_sec=30");
    let ServiceAnswer::Later { etag, within } = answer_google(&service, &request) else {
        panic!("at once")
    };
    assert_eq!(within, Some(Duration::from_secs(30)));
    let again = request.clone().changed_since(etag.clone());
    assert!(matches!(answer_google(&service, &again), ServiceAnswer::Later { .. }));
    assert_eq!(said(&service, &again.clone().without_waiting()).body, "FALSE");
    service.announce_event(announce_taken(TakingAction::Terminate));
    let after = said(&service, &again);
    assert_eq!(after.body, "TRUE");
    assert_ne!(after.find_header(ETAG), Some(etag.as_str()));
    // Whoever knows nothing yet is answered at once.
    let first = ask("instance/preempted?wait_for_change=true&last_etag=0");
    assert_eq!(said(&service, &first).body, "TRUE");
}

#[test]
fn a_hibernation_is_no_preemption() {
    let mut service = spot_service();
    service.announce_event(announce_taken(TakingAction::Hibernate));
    assert_eq!(body(&service, "instance/preempted"), "FALSE");
}

#[test]
fn the_dialect_is_told_by_the_path() {
    let mut service = spot_service();
    let request = ask("instance/preempted");
    let ServiceAnswer::Now(said) = service.answer_request(&request, UnixTime::from_micros(0))
    else {
        panic!()
    };
    assert_eq!(said.body, "FALSE");
}
