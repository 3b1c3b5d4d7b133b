//! Responses in terms of HTTP.

use std::time::Duration;

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// HTTP status code.
    pub status: u16,
    /// Content type of the body.
    pub content_type: &'static str,
    /// Further headers by name.
    pub headers: Vec<(&'static str, String)>,
    /// The content of the response.
    pub body: String,
}

/// Result of handling a request: a response now or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAnswer {
    /// The response to send.
    Now(HttpResponse),
    /// The request waits: repeat it with [`Request::changed_since`](crate::Request::changed_since) this ETag after each
    /// announcement, and with [`without waiting`](crate::Request::without_waiting) when its time is over.
    Later {
        /// ETag of the resource when the request came.
        etag: String,
        /// Longest time for which the request waits for an announcement; `None`: no limit.
        within: Option<Duration>,
    },
}

impl HttpResponse {
    /// A response with status 200 and this plain text.
    pub(crate) fn plain_text(body: impl Into<String>) -> Self {
        Self { status: 200, content_type: "text/plain", headers: Vec::new(), body: body.into() }
    }

    /// A response with status 200 and this JSON.
    pub(crate) fn json_text(body: impl Into<String>) -> Self {
        Self { content_type: "application/json", ..Self::plain_text(body) }
    }

    /// The response with this status instead of its own.
    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The response with one more header.
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Value of a header; the name is compared as it is spelled here.
    #[must_use]
    pub fn find_header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }
}
