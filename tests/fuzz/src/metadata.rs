//! Requests of programs to the metadata service of their VM.

use std::net::Ipv4Addr;

use dormouse_metadata::{
    Announcement, Answer, Facts, Interruption, Key, Market, Method, Place, Request, Service,
    Settings, Taking, Tokens, UnixTime,
};

/// An instant of 2026, in microseconds since 1970.
const NOW: u64 = 1_781_000_000_000_000;

/// Answers one request after another, which empty lines separate: a method, a target, headers, a body.
pub(crate) fn metadata(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let tokens = if bytes.len().is_multiple_of(2) { Tokens::Optional } else { Tokens::Required };
    let facts = Facts {
        identity: "run/7".to_owned(),
        kind: "c3.large".to_owned(),
        place: Place::of_zone("us-east-1a"),
        market: Market::Spot,
        launched: UnixTime::from_micros(NOW),
        address: Ipv4Addr::new(10, 0, 0, 11),
        tags: [("Name".to_owned(), "worker".to_owned())].into(),
        user_data: Some("#!/bin/sh".to_owned()),
    };
    let mut service = Service::new(facts, Settings { tokens }, Key::new([7; 32]));
    let mut token = None;
    for (n, part) in text.split("\n\n").enumerate() {
        let now = UnixTime::from_micros(NOW + n as u64 * 1_000_000);
        match part {
            "terminate" => {
                let at = UnixTime::from_micros(NOW + 120_000_000);
                let taken = Interruption { taking: Taking::Terminate, at };
                service.announce(Announcement::Interruption(taken));
            }
            "rebalance" => service.announce(Announcement::Rebalance(now)),
            "resumed" => service.announce(Announcement::Resumed),
            request => ask(&mut service, request, now, &mut token),
        }
    }
}

fn ask(service: &mut Service, text: &str, now: UnixTime, token: &mut Option<String>) {
    let mut lines = text.lines();
    let (method, target) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or_default();
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put,
        "POST" => Method::Post,
        _ => Method::Other,
    };
    let mut request = Request::new(method, target);
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
    match service.answer(&request, now) {
        Answer::Now(response) => {
            assert!((100..600).contains(&response.status), "{}", response.status);
            if method == Method::Put && response.status == 200 {
                *token = Some(response.body);
            }
        }
        Answer::Later { etag, .. } => {
            let later = request.since(etag).without_waiting();
            assert!(matches!(service.answer(&later, now), Answer::Now(_)), "it waits no more");
        }
    }
}
