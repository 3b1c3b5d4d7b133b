//! Azure's dialect: scheduled events, and the instance metadata service.

mod items;
mod versions;

use serde_json::{Value, json};

use self::versions::{AzureVersion, EVENT_VERSIONS, INSTANCE_VERSIONS};
use crate::{HttpMethod, HttpRequest, HttpResponse, MetadataService, TakingAction};

/// Answers a request in Azure's dialect.
pub(crate) fn answer_azure(service: &mut MetadataService, request: &HttpRequest) -> HttpResponse {
    if request.is_forwarded() {
        return error_page(400, "Bad request. X-Forwarded-For is not allowed");
    }
    if request.find_header("metadata").is_none_or(|said| !said.eq_ignore_ascii_case("true")) {
        return error_page(400, "Bad request. Required metadata header not specified");
    }
    match request.path_parts()[..] {
        [_, "scheduledevents"] => match requested_version(request, EVENT_VERSIONS) {
            Err(no) => no,
            Ok(_) if request.method == HttpMethod::Post => approve_event(service, &request.body),
            Ok(version) if request.is_reading() => {
                HttpResponse::json_text(scheduled_events(service, version).to_string())
            }
            Ok(_) => error_page(405, "Method not allowed"),
        },
        [_, "instance", ref path @ ..] => match requested_version(request, INSTANCE_VERSIONS) {
            Err(no) => no,
            Ok(_) if !request.is_reading() => error_page(405, "Method not allowed"),
            Ok(version) => {
                let all = items::instance_document(&service.facts, version);
                respond_with(&all, path, request.find_query("format"))
            }
        },
        [_, "versions"] => {
            HttpResponse::json_text(json!({ "apiVersions": INSTANCE_VERSIONS }).to_string())
        }
        _ => error_page(404, "Not found"),
    }
}

/// The requested version if it is one of `known`; else the response that refuses it.
fn requested_version(
    request: &HttpRequest,
    known: &[&'static str],
) -> Result<AzureVersion, HttpResponse> {
    let named = request.find_query("api-version");
    let found = known.iter().find(|version| Some(**version) == named);
    found.map(|version| AzureVersion::new(version)).ok_or_else(|| {
        let newest: Vec<_> = known.iter().rev().take(3).collect();
        let why = "Bad request. api-version is invalid or was not specified in the request. For more \
                   information refer to aka.ms/azureimds";
        let body = json!({ "error": why, "newest-versions": newest });
        HttpResponse::json_text(body.to_string()).with_status(400)
    })
}

/// The document of scheduled events in this version; its incarnation number rises with each change.
fn scheduled_events(service: &MetadataService, version: AzureVersion) -> Value {
    let event = service.notices.interruption.and_then(|interruption| {
        let is_approved = service.notices.is_approved;
        let kind = match interruption.taking {
            TakingAction::Terminate | TakingAction::Stop
                if version.includes_since("2017-11-01") =>
            {
                "Preempt"
            }
            // Versions before have no evictions of spot VMs.
            TakingAction::Terminate | TakingAction::Stop => return None,
            TakingAction::Hibernate => "Freeze",
        };
        let not_before = if is_approved { String::new() } else { interruption.at.http_text() };
        let mut event = json!({
            "EventId": event_id(service),
            "EventType": kind,
            "ResourceType": "VirtualMachine",
            "Resources": [service.facts.name()],
            "EventStatus": if is_approved { "Started" } else { "Scheduled" },
            "NotBefore": not_before,
        });
        for (key, since, value) in [
            ("Description", "2019-04-01", json!("")),
            ("EventSource", "2019-08-01", json!("Platform")),
            ("DurationInSeconds", "2020-07-01", json!(-1)),
        ] {
            if version.includes_since(since) {
                event[key] = value;
            }
        }
        Some(event)
    });
    let events: Vec<_> = event.into_iter().collect();
    json!({ "DocumentIncarnation": service.notices.changes + 1, "Events": events })
}

fn event_id(service: &MetadataService) -> String {
    let at = service.notices.interruption.map_or(0, |it| it.at.as_micros());
    service.facts.azure_uuid(&format!("event {at}")).to_uppercase()
}

/// Handles a VM's approval of an event. The event begins at its announced time anyway.
fn approve_event(service: &mut MetadataService, body: &[u8]) -> HttpResponse {
    let asked: Result<Value, _> = serde_json::from_slice(body);
    let ids = asked.ok().and_then(|asked| {
        let requests = asked.get("StartRequests")?.as_array()?.clone();
        requests.iter().map(|it| Some(it.get("EventId")?.as_str()?.to_owned())).collect()
    });
    let Some(ids): Option<Vec<String>> = ids else {
        return error_page(400, "Bad request. The body has no StartRequests with an EventId each");
    };
    let ours = event_id(service);
    if service.notices.interruption.is_none() || ids.iter().any(|id| *id != ours) {
        return error_page(404, "There is no event of that EventId");
    }
    if !ids.is_empty() && !service.notices.is_approved {
        service.notices.is_approved = true;
        service.notices.changes += 1;
    }
    HttpResponse::json_text("")
}

/// The value at a path, as JSON, or a single value as text if that format is requested.
fn respond_with(root: &Value, path: &[&str], format: Option<&str>) -> HttpResponse {
    let found = path.iter().try_fold(root, |at, part| match part.parse::<usize>() {
        Ok(place) if at.is_array() => at.get(place),
        _ => at.get(*part),
    });
    match (found, format) {
        (None, _) => error_page(404, "Not found"),
        (Some(Value::String(text)), Some("text")) => HttpResponse::plain_text(text.as_str()),
        (Some(Value::Object(_) | Value::Array(_)), Some("text")) => {
            error_page(400, "Bad request. Only a single value is text")
        }
        (Some(value), _) => HttpResponse::json_text(value.to_string()),
    }
}

fn error_page(status: u16, why: &str) -> HttpResponse {
    HttpResponse::json_text(json!({ "error": why }).to_string()).with_status(status)
}

#[cfg(test)]
mod tests;
