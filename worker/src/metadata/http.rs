//! One request of a connection, between HTTP and the metadata service. The client may be any program, so the size of
//! its request and the time that it may take are bounded.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use dormouse_metadata::{HttpMethod, HttpRequest, HttpResponse};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::endpoint::State;

/// Time that a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of a request line with all headers of the request.
const HEAD_BYTES: usize = 16 << 10;
/// The most headers of a request.
const HEADERS: usize = 64;
/// The most bytes of a request's body.
const BODY_BYTES: usize = 16 << 10;

/// Answers the only request of a connection to a VM's metadata endpoint.
pub(super) async fn answer_one(stream: impl AsyncRead + AsyncWrite + Unpin, state: &State) {
    let answer = service_fn(|request| async {
        let response = match read(request).await {
            Ok(request) => {
                let is_head = request.method == HttpMethod::Head;
                let response = write_response(state.answer_request(request).await);
                if is_head { response.map(|_| Full::default()) } else { response }
            }
            Err(status) => bare_response(status),
        };
        Ok::<_, Infallible>(response)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES);
    server.max_headers(HEADERS).keep_alive(false);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a request for metadata came to nothing");
    }
}

/// Reads a request; the error is the HTTP status with which the request is refused.
async fn read(request: hyper::Request<Incoming>) -> Result<HttpRequest, hyper::StatusCode> {
    let (head, body) = request.into_parts();
    let method = match head.method {
        hyper::Method::GET => HttpMethod::Get,
        hyper::Method::HEAD => HttpMethod::Head,
        hyper::Method::PUT => HttpMethod::Put,
        hyper::Method::POST => HttpMethod::Post,
        _ => HttpMethod::Other,
    };
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut read = HttpRequest::new(method, target);
    for (name, value) in &head.headers {
        if let Ok(value) = value.to_str() {
            read = read.with_header(name.as_str(), value);
        }
    }
    let body = tokio::time::timeout(PATIENCE, Limited::new(body, BODY_BYTES).collect()).await;
    match body {
        Ok(Ok(body)) => Ok(HttpRequest { body: body.to_bytes().to_vec(), ..read }),
        Ok(Err(_)) => Err(hyper::StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(hyper::StatusCode::REQUEST_TIMEOUT),
    }
}

fn write_response(said: HttpResponse) -> hyper::Response<Full<Bytes>> {
    let HttpResponse { status, content_type, headers, body } = said;
    let mut response = hyper::Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::CONTENT_LENGTH, body.len());
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let response = response.body(Full::new(Bytes::from(body)));
    response.unwrap_or_else(|_| bare_response(hyper::StatusCode::INTERNAL_SERVER_ERROR))
}

fn bare_response(status: hyper::StatusCode) -> hyper::Response<Full<Bytes>> {
    let mut response = hyper::Response::new(Full::default());
    *response.status_mut() = status;
    response
}
