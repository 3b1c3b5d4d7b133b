//! HTTP replies.

use dormouse_ec2_wire::{ApiError, write_error};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

/// An HTTP reply: its status, its content type and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpReply {
    status: u16,
    kind: &'static str,
    body: String,
    /// Error code in the older protocol awsQuery, which some clients read from a header of the reply; `None`: the reply
    /// has no such header.
    query_error: Option<&'static str>,
}

impl HttpReply {
    /// A reply in XML with this status.
    pub(crate) const fn xml(status: u16, body: String) -> Self {
        Self { status, kind: "text/xml;charset=UTF-8", body, query_error: None }
    }

    /// The reply for an error of EC2.
    pub(crate) fn ec2_error(error: &ApiError, request_id: &str) -> Self {
        let (status, body) = write_error(error, request_id);
        Self::xml(status, body)
    }

    /// Returns this reply with its HTTP status replaced.
    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// A reply of a service that speaks awsJson 1.1.
    pub(crate) fn aws_json(status: u16, body: &Value) -> Self {
        Self {
            query_error: None,
            status,
            kind: "application/x-amz-json-1.1",
            body: body.to_string(),
        }
    }

    /// The reply for an error of a service that speaks awsJson 1.1.
    pub(crate) fn aws_json_error(error: &ApiError) -> Self {
        let body = json!({ "__type": error.code, "message": error.message });
        let query_error = match error.code.as_str() {
            "QueueDoesNotExist" => Some("AWS.SimpleQueueService.NonExistentQueue;Sender"),
            _ => None,
        };
        Self { query_error, ..Self::aws_json(400, &body) }
    }

    /// A reply in JSON for Dormouse's own paths.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self { query_error: None, status, kind: "application/json", body: format!("{body}\n") }
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::from(self.body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        if let Some(code) = self.query_error {
            response.headers_mut().insert("x-amzn-query-error", HeaderValue::from_static(code));
        }
        if let Ok(id) = HeaderValue::from_str(request_id) {
            response.headers_mut().insert("x-amzn-requestid", id);
        }
        response
    }
}
