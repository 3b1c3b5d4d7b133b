//! State that all connections of an endpoint share, and checks of their requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use constant_time_eq::constant_time_eq;
use dormouse_ec2_wire::{ApiError, ServiceModel};
use hyper::Method;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;
use serde_json::json;

use crate::caller::CallerScope;
use crate::clock::ClockedCloud;
use crate::fault_injection::{FaultCall, FaultRecords};
use crate::identity_records::IdentityRecords;
use crate::kept_records::KeptRecord;
use crate::queue_records::QueueRecords;
use crate::reply::HttpReply;
use crate::signature::is_signed;
use crate::{AccessSecrets, CloudSession};

/// Beginning of the access keys of instances' roles.
const ROLE_KEYS: &str = "ASIA";

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOrigin {
    /// From the port for clients.
    Client,
    /// From the port for instances, whose programs show the credentials of their role.
    Instance,
}

/// An endpoint's state.
#[derive(Debug)]
pub(crate) struct Ec2Site<S> {
    /// The cloud with its clock; `None` once the run is over.
    cloud: Mutex<Option<ClockedCloud<S>>>,
    pub(crate) records: Mutex<IdentityRecords>,
    faults: Mutex<FaultRecords>,
    pub(crate) queues: Mutex<QueueRecords>,
    pub(crate) model: ServiceModel,
    /// Secret keys of the clients. `None`: signatures are not checked, and requests must name this host by a loopback
    /// name.
    secrets: Option<AccessSecrets>,
    requests: AtomicU64,
}

impl<S: CloudSession> Ec2Site<S> {
    pub(crate) fn new(
        cloud: ClockedCloud<S>,
        model: ServiceModel,
        secrets: Option<AccessSecrets>,
    ) -> Self {
        let kept = cloud.kept_records();
        let site = Self {
            cloud: Mutex::new(Some(cloud)),
            records: Mutex::default(),
            faults: Mutex::default(),
            queues: Mutex::default(),
            model,
            secrets,
            requests: AtomicU64::new(0),
        };
        site.restore(&kept);
        site
    }

    /// Restores the records that a run has kept. An invalid line is left out: its writing was cut off when the run was
    /// killed, and its call was not answered.
    fn restore(&self, lines: &[String]) {
        let read = |line: &String| serde_json::from_str::<KeptRecord>(line).ok();
        for record in lines.iter().filter_map(read) {
            match record {
                KeptRecord::Iam { account, action, pairs, date } => {
                    let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
                    // It was possible before.
                    let _ = records.call(&account, &action, &pairs, date);
                }
                KeptRecord::Fis { account, region, kind, token, value } => {
                    let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
                    faults.restore((account, region), &kind, token, value);
                }
                KeptRecord::Sqs { account, region, name, created, visibility_s, next } => {
                    let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
                    queues.restore((account, region, name), (created, visibility_s), next);
                }
            }
        }
    }

    /// Locks the cloud, which serves one request at a time.
    fn locked(&self) -> MutexGuard<'_, Option<ClockedCloud<S>>> {
        // Whoever panicked with it has broken this one call.
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with the cloud.
    ///
    /// # Errors
    ///
    /// The run is over.
    pub(crate) fn with_cloud<T>(
        &self,
        act: impl FnOnce(&mut ClockedCloud<S>) -> T,
    ) -> Result<T, ApiError> {
        match &mut *self.locked() {
            Some(cloud) => Ok(act(cloud)),
            None => Err(ApiError::new("Unavailable", "The run is over.")),
        }
    }

    /// Ends the run once the present call is answered, and returns the cloud; later calls are refused. `None`: the
    /// run has ended before.
    pub(crate) fn end(&self) -> Option<S> {
        self.locked().take().map(ClockedCloud::into_session)
    }

    /// Id of the next request. Ids are consecutive numbers, so that a repeated run has the same ids.
    pub(crate) fn next_request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    /// Answers a whole request. This may take long: time passes meanwhile.
    pub(crate) fn answer(
        &self,
        origin: CallOrigin,
        parts: &Parts,
        body: &[u8],
        request_id: &str,
    ) -> HttpReply {
        let caller = match self.admit(origin, parts, body) {
            Ok(caller) => caller,
            Err(error) => return HttpReply::ec2_error(&error, request_id),
        };
        match (&parts.method, parts.uri.path()) {
            (&Method::GET, "/_dormouse/now") => self.tell_now(),
            (&Method::POST, "/_dormouse/advance") => self.advance(body),
            (&Method::POST | &Method::GET, "/") => {
                self.answer_api(&caller, parts, body, request_id)
            }
            (method, path) => {
                let faults =
                    (caller.service == "fis").then(|| self.answer_faults(&caller, parts, body));
                if let Some(reply) = faults.flatten() {
                    return reply;
                }
                let service = if caller.service.is_empty() { "ec2" } else { &caller.service };
                let text = format!("{service}: {method} {path} is not played here.");
                HttpReply::ec2_error(&ApiError::new("UnsupportedOperation", text), request_id)
            }
        }
    }

    /// Checks that a request may be answered, and returns its caller.
    fn admit(
        &self,
        origin: CallOrigin,
        parts: &Parts,
        body: &[u8],
    ) -> Result<CallerScope, ApiError> {
        let refused = |text: &str| ApiError::new("AuthFailure", text);
        let not_shown = "AWS was not able to validate the provided access credentials";
        if parts.headers.contains_key(ORIGIN) {
            return Err(refused("Pages in a browser may not call this endpoint."));
        }
        let caller = CallerScope::of_headers(&parts.headers)
            .ok_or_else(|| refused("The Authorization header is not of signature version 4."))?;
        if origin == CallOrigin::Instance || caller.key.starts_with(ROLE_KEYS) {
            let role = self.with_cloud(|cloud| cloud.session().role_key(&caller.key))?;
            if let Some(role) = role {
                let token = parts.headers.get("x-amz-security-token");
                let has_token =
                    token.is_some_and(|it| constant_time_eq(it.as_bytes(), role.token.as_bytes()));
                let dates = self.near_dates()?;
                if has_token && is_signed(&role.secret, &caller, parts, body, dates) {
                    return Ok(CallerScope { of_instance: Some(role.account), ..caller });
                }
                return Err(refused(not_shown));
            }
            if origin == CallOrigin::Instance {
                return Err(refused(not_shown));
            }
        }
        let Some(secrets) = &self.secrets else {
            let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
            if host.is_some_and(is_loopback_name) {
                return Ok(caller);
            }
            return Err(refused("Call this endpoint as 127.0.0.1, [::1] or localhost."));
        };
        if secrets.are_shown(&caller, parts, body, self.near_dates()?) {
            Ok(caller)
        } else {
            Err(refused(not_shown))
        }
    }

    /// The host's date and the run's, near which signatures are made, in seconds since 1970.
    fn near_dates(&self) -> Result<[i64; 2], ApiError> {
        let host_s =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let run_s = self.with_cloud(|cloud| cloud.date() / 1_000_000)?;
        Ok([i64::try_from(host_s).unwrap_or(i64::MAX), run_s])
    }

    /// Answers a call of FIS; `None`: FIS has no such path.
    fn answer_faults(&self, caller: &CallerScope, parts: &Parts, body: &[u8]) -> Option<HttpReply> {
        let (account, region) = (caller.account(), caller.region.clone());
        let answered = self.with_cloud(|cloud| {
            let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
            let call = FaultCall { account, region, date: cloud.date() };
            let path = (&parts.method, parts.uri.path());
            faults.call(&call, path, body, cloud.session())
        });
        Some(match answered.transpose()?.and_then(|answer| answer) {
            Ok(answer) => HttpReply::json(200, &answer),
            Err(ApiError { code, message }) => {
                let status = match code.as_str() {
                    "ResourceNotFoundException" => 404,
                    "ServiceQuotaExceededException" => 402,
                    "Unavailable" => 503,
                    _ => 400,
                };
                HttpReply::json(status, &json!({ "code": code, "message": message }))
            }
        })
    }

    fn tell_now(&self) -> HttpReply {
        match self.with_cloud(ClockedCloud::now_document) {
            Ok(now) => HttpReply::json(200, &now),
            Err(error) => HttpReply::json(503, &json!({ "error": error.message })),
        }
    }

    fn advance(&self, body: &[u8]) -> HttpReply {
        match self.with_cloud(|cloud| cloud.advance(body).map(|()| cloud.now_document())) {
            Ok(Ok(now)) => HttpReply::json(200, &now),
            Ok(Err(why)) => HttpReply::json(400, &json!({ "error": why })),
            Err(error) => HttpReply::json(503, &json!({ "error": error.message })),
        }
    }
}

/// Whether a `Host` header names this host by a loopback name. Without the check, a web page elsewhere could send its
/// readers' requests here under a name of its own.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_own_names_alone() {
        for name in ["localhost", "localhost:4", "127.0.0.1:80", "127.0.0.5", "[::1]:80", "[::1]"] {
            assert!(is_loopback_name(name), "{name}");
        }
        for name in ["", "evil.example", "localhost.evil.example:1", "10.0.0.1:80"] {
            assert!(!is_loopback_name(name), "{name}");
        }
    }
}
