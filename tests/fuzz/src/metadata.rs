//! Requests of programs to the metadata service of their VM.

use std::net::Ipv4Addr;

use dormouse_metadata::{
    EndpointSettings, HttpMethod, HttpRequest, InstanceAccess, InterruptionNotice, MetadataService,
    ServiceAnswer, TakingAction, TokenRule, TokenSecret, UnixTime, VmAnnouncement, VmFacts,
    VmMarket, VmPlace,
};

/// An instant of 2026, in microseconds since 1970.
const NOW: u64 = 1_781_000_000_000_000;

/// Answers the requests in the input one after the other; empty lines separate them. Each has a method, a target,
/// headers and a body.
pub(crate) fn metadata(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let tokens =
        if bytes.len().is_multiple_of(2) { TokenRule::Optional } else { TokenRule::Required };
    let facts = VmFacts {
        instance_id: None,
        image_id: None,
        identity: "run/7".to_owned(),
        kind: "c3.large".to_owned(),
        place: VmPlace::of_zone("us-east-1a"),
        market: VmMarket::Spot,
        launched: UnixTime::from_micros(NOW),
        address: Ipv4Addr::new(10, 0, 0, 11),
        tags: [("Name".to_owned(), "worker".to_owned())].into(),
        user_data: Some("#!/bin/sh".to_owned()),
        security_groups: Vec::new(),
        access: InstanceAccess {
            public_address: Some(Ipv4Addr::new(127, 80, 0, 4)),
            public_key: Some(("key".to_owned(), "ssh-ed25519 AAAA".to_owned())),
            role: None,
        },
    };
    let mut service =
        MetadataService::new(facts, EndpointSettings { tokens }, TokenSecret::new([7; 32]));
    let mut token = None;
    for (n, part) in text.split("\n\n").enumerate() {
        let now = UnixTime::from_micros(NOW + n as u64 * 1_000_000);
        match part {
            "terminate" => {
                let at = UnixTime::from_micros(NOW + 120_000_000);
                let taken = InterruptionNotice { taking: TakingAction::Terminate, at };
                service.announce_event(VmAnnouncement::Interruption(taken));
            }
            "rebalance" => service.announce_event(VmAnnouncement::Rebalance(now)),
            "resumed" => service.announce_event(VmAnnouncement::Resumed),
            request => ask(&mut service, request, now, &mut token),
        }
    }
}

fn ask(service: &mut MetadataService, text: &str, now: UnixTime, token: &mut Option<String>) {
    let mut lines = text.lines();
    let (method, target) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or_default();
    let method = match method {
        "GET" => HttpMethod::Get,
        "HEAD" => HttpMethod::Head,
        "PUT" => HttpMethod::Put,
        "POST" => HttpMethod::Post,
        _ => HttpMethod::Other,
    };
    let mut request = HttpRequest::new(method, target);
    for line in lines {
        match line.split_once(": ") {
            // A token can't be guessed: the last one that was given.
            Some((name, "TOKEN")) => {
                request = request.with_header(name, token.as_deref().unwrap_or_default());
            }
            Some((name, value)) => request = request.with_header(name, value),
            None => request.body.extend(line.bytes()),
        }
    }
    match service.answer_request(&request, now) {
        ServiceAnswer::Now(response) => {
            assert!((100..600).contains(&response.status), "{}", response.status);
            if method == HttpMethod::Put && response.status == 200 {
                *token = Some(response.body);
            }
        }
        ServiceAnswer::Later { etag, .. } => {
            let later = request.changed_since(etag).without_waiting();
            assert!(
                matches!(service.answer_request(&later, now), ServiceAnswer::Now(_)),
                "it waits no more"
            );
        }
    }
}
