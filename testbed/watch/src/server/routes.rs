//! Requests that a page may make, and the files that the page consists of.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router, middleware};
use dormouse_identity::Role;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access::{COOKIE_NAME, PageAccess};
use super::peer::PagePeer;
use super::stream;
use crate::desk::{DeskError, InterruptionRequest};
use crate::happenings::EventQuery;
use crate::metrics::MetricFormat;
use crate::{FollowedRun, desk, happenings};

/// Greatest number of pages that may follow a run at once.
const PAGES: usize = 64;
/// Greatest number of clients that read the log at once; others wait.
const READERS: usize = 2;
/// Greatest size of a request's body, in bytes.
const LARGEST: usize = 16 << 10;
/// Longest time for a request with a body, with its answer.
const POST_PATIENCE: Duration = Duration::from_secs(30);
const TOO_MANY: &str = "there are too many connections to this page: close one";
/// Content security policy: the page loads only its own files.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// State from which all requests are answered.
#[derive(Clone, Debug)]
pub(super) struct SiteState {
    followed: Arc<FollowedRun>,
    access: PageAccess,
    playback: Option<f64>,
    pages: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl SiteState {
    pub(super) fn new(
        followed: Arc<FollowedRun>,
        access: PageAccess,
        playback: Option<f64>,
    ) -> Self {
        let (pages, readers) = (Arc::new(Semaphore::new(PAGES)), Arc::new(Semaphore::new(READERS)));
        Self { followed, access, playback, pages, readers }
    }
}

/// The router of all paths.
pub(super) fn router(site: SiteState) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/page/{name}", get(asset))
        .route("/login", post(login))
        .route("/api/run", get(run))
        .route("/metrics", get(metrics))
        .route("/api/changes", get(changes))
        .route("/api/events", get(events))
        .route("/api/explain", get(explain))
        .route("/api/cancel", post(cancel))
        .route("/api/interrupt", post(interrupt))
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(middleware::from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

/// An error answer of one line.
fn error_answer(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

/// Checks access, and adds the headers that restrict what a browser may do with the answer.
async fn guard(
    State(site): State<SiteState>,
    Extension(peer): Extension<PagePeer>,
    request: Request,
    next: Next,
) -> Response {
    let (path, is_post) = (request.uri().path(), request.method() == Method::POST);
    // The form and its style are for clients that have yet to show a token.
    let is_free = path == "/login" || path == "/page/page.css" || path == "/page/icon.svg";
    let may = match is_post {
        _ if is_free => Ok(()),
        true => site.access.may_act(&peer, request.headers()),
        false => site.access.may_look(&peer, request.headers()),
    };
    match may {
        Ok(()) if is_free || peer.admit() => {}
        Ok(()) => return error_answer(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY),
        Err(_) => peer.refuse(),
    }
    let mut response = match may {
        Ok(()) if is_post => match timeout(POST_PATIENCE, next.run(request)).await {
            Ok(response) => response,
            Err(_) => error_answer(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
        },
        Ok(()) => next.run(request).await,
        Err(refusal) if path == "/" => {
            (refusal.status(), html(&login_form(refusal.why()))).into_response()
        }
        Err(refusal) => error_answer(refusal.status(), refusal.why()),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Another version of the program has another page.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

fn html(text: &str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], text.to_owned())
}

/// The login form for the token.
fn login_form(why: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Dormouse</title><link rel=\"stylesheet\" \
         href=\"/page/page.css\"><link rel=\"icon\" href=\"/page/icon.svg\"><main \
         class=\"login\"><h1>Dormouse</h1><p>To look at this run, {why}.</p><form method=\"post\" \
         action=\"/login\"><label>A token of the run <input name=\"secret\" type=\"password\" \
         autocomplete=\"current-password\" required></label> <button>Look on</button></form></main></html>"
    )
}

async fn index() -> impl IntoResponse {
    html(INDEX)
}

async fn asset(Path(name): Path<String>) -> Response {
    match named(&name) {
        Some((kind, text)) => ([(CONTENT_TYPE, kind)], text).into_response(),
        None => error_answer(StatusCode::NOT_FOUND, "the page has no such file"),
    }
}

/// Takes the token from the login form and returns it as a cookie of this page alone.
async fn login(State(site): State<SiteState>, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body);
    let secret = text.split('&').find_map(|field| field.strip_prefix("secret="));
    match secret.filter(|secret| site.access.is_token(Role::Observer, secret)) {
        Some(secret) => {
            let secret = secret.trim();
            let cookie = format!("{COOKIE_NAME}={secret}; HttpOnly; SameSite=Strict; Path=/");
            (
                StatusCode::SEE_OTHER,
                [(SET_COOKIE, cookie.as_str()), (axum::http::header::LOCATION, "/")],
            )
                .into_response()
        }
        None => (
            StatusCode::UNAUTHORIZED,
            html(&login_form(
                "that is not a token of the run. Give the content of the file \
                        `secret.observer` in the run's folder, or of `secret.operator` to act on the run",
            )),
        )
            .into_response(),
    }
}

async fn run(State(site): State<SiteState>) -> impl IntoResponse {
    let mut about = site.followed.about();
    about["playback"] = site
        .playback
        .map_or(serde_json::Value::Null, |speed| json!({ "from_s": 0, "speed": speed }));
    Json(about)
}

/// Answers with the metrics for Prometheus, in the format that the client prefers.
async fn metrics(State(site): State<SiteState>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = MetricFormat::accepted(accept);
    ([(CONTENT_TYPE, format.content_type())], site.followed.metrics(format)).into_response()
}

#[derive(Deserialize)]
struct FromQuery {
    from: Option<usize>,
}

async fn changes(
    State(site): State<SiteState>,
    Query(FromQuery { from }): Query<FromQuery>,
    Extension(peer): Extension<PagePeer>,
    headers: HeaderMap,
) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let from = last.or(from).unwrap_or_default();
    let Ok(place) = Arc::clone(&site.pages).try_acquire_owned() else {
        let why = format!("{PAGES} pages follow this run already: close one");
        return error_answer(StatusCode::SERVICE_UNAVAILABLE, &why);
    };
    let access = site.access;
    let may_look = move || access.may_look(&peer, &headers).is_ok();
    Sse::new(stream::changes(site.followed, from, place, may_look))
        .keep_alive(KeepAlive::default())
        .into_response()
}

async fn events(State(site): State<SiteState>, Query(asked): Query<EventQuery>) -> Response {
    let Some(lines) = site.followed.lines() else {
        return Json(json!({ "events": [], "first": true, "before": 0,
            "note": "the run has so many jobs that its events were not kept" }))
        .into_response();
    };
    let folder = site.followed.folder().to_owned();
    read_log(&site, move || {
        happenings::told(&folder, &lines, &asked).map_err(|error| error.to_string())
    })
    .await
}

#[derive(Deserialize)]
struct ExplainQuery {
    about: String,
}

async fn explain(
    State(site): State<SiteState>,
    Query(ExplainQuery { about }): Query<ExplainQuery>,
) -> Response {
    let folder = site.followed.folder().to_owned();
    read_log(&site, move || {
        let log =
            dormouse_report::output::RunLog::read(&folder).map_err(|error| error.to_string())?;
        let told =
            dormouse_report::explain::explain(&log, &about).map_err(|error| error.to_string())?;
        let text =
            told.map_or_else(|| format!("this run has no {about} so far"), |told| told.to_string());
        Ok(json!({ "text": text }))
    })
    .await
}

/// Reads the log on a thread that may block, a few clients at a time.
async fn read_log(
    site: &SiteState,
    reading: impl FnOnce() -> Result<serde_json::Value, String> + Send + 'static,
) -> Response {
    // The semaphore is never closed.
    let Ok(_turn) = site.readers.acquire().await else {
        return error_answer(StatusCode::SERVICE_UNAVAILABLE, "the page's server is ending");
    };
    match tokio::task::spawn_blocking(reading).await {
        Ok(Ok(value)) => Json(value).into_response(),
        Ok(Err(why)) => error_answer(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => error_answer(StatusCode::INTERNAL_SERVER_ERROR, "the log could not be read"),
    }
}

/// Status and words for a body that is not accepted.
type NotTaken = (StatusCode, String);

/// Parses the body of a JSON request, a type that a form of another site's page can't send.
fn parse_body<T: for<'a> Deserialize<'a>>(
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<T, NotTaken> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let why = "send it as application/json".to_owned();
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    serde_json::from_slice(body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("it can't be read: {error}")))
}

fn desk_error_answer(error: &DeskError) -> Response {
    error_answer(StatusCode::CONFLICT, &dormouse_experiment::chain(error))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    #[serde(default)]
    why: String,
}

/// Cancels the run from the page. The `guard` before this route has checked that the caller may act (an operator).
async fn cancel(State(site): State<SiteState>, headers: HeaderMap, body: Bytes) -> Response {
    let CancelBody { why } = match parse_body(&headers, &body) {
        Ok(wanted) => wanted,
        Err((status, why)) => return error_answer(status, &why),
    };
    match desk::cancel(site.followed.folder(), why).await {
        Ok(()) => Json(json!({})).into_response(),
        Err(error) => desk_error_answer(&error),
    }
}

async fn interrupt(State(site): State<SiteState>, headers: HeaderMap, body: Bytes) -> Response {
    let wanted: InterruptionRequest = match parse_body(&headers, &body) {
        Ok(wanted) => wanted,
        Err((status, why)) => return error_answer(status, &why),
    };
    match desk::interrupt(site.followed.folder(), wanted).await {
        Ok((at_s, vms)) => Json(json!({ "at_s": at_s, "vms": vms })).into_response(),
        Err(error) => desk_error_answer(&error),
    }
}

/// A file of the page: name, media type, content.
type Asset = (&'static str, &'static str, &'static str);

/// HTML of the page itself.
pub(super) const INDEX: &str = include_str!("../../page/index.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        /// All other files that the page loads.
        const ASSETS: &[Asset] =
            &[$(($name, $kind, include_str!(concat!("../../page/", $name)))),+];
    };
}

assets! {
    "actions.js": SCRIPT,
    "axis.js": SCRIPT,
    "charts.js": SCRIPT,
    "clock.js": SCRIPT,
    "columns.js": SCRIPT,
    "controls.js": SCRIPT,
    "dom.js": SCRIPT,
    "events.js": SCRIPT,
    "find.js": SCRIPT,
    "gantt.js": SCRIPT,
    "history.js": SCRIPT,
    "hit.js": SCRIPT,
    "hostmap.js": SCRIPT,
    "icon.svg": IMAGE,
    "list.js": SCRIPT,
    "loading.js": SCRIPT,
    "main.js": SCRIPT,
    "market.js": SCRIPT,
    "marks.js": SCRIPT,
    "moment.js": SCRIPT,
    "page.css": STYLE,
    "panels.js": SCRIPT,
    "paper.js": SCRIPT,
    "place.js": SCRIPT,
    "plot.js": SCRIPT,
    "rows.js": SCRIPT,
    "selection.js": SCRIPT,
    "status.js": SCRIPT,
    "stream.js": SCRIPT,
    "strip.js": SCRIPT,
    "theme.js": SCRIPT,
    "usage.js": SCRIPT,
    "view.js": SCRIPT,
    "words.js": SCRIPT,
}

/// Media type and content of the file with this name.
pub(super) fn named(name: &str) -> Option<(&'static str, &'static str)> {
    ASSETS.iter().find(|(it, ..)| *it == name).map(|(_, kind, text)| (*kind, *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_in_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let files = std::fs::read_dir(folder).expect("the page's folder");
        let mut names: Vec<String> = files
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .filter(|name| name != "index.html")
            .collect();
        names.sort_unstable();
        assert_eq!(names, ASSETS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    }
}
