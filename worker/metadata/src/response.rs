//! Responses, as HTTP takes them.

use std::time::Duration;

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status of HTTP.
    pub status: u16,
    /// The kind of the body.
    pub content_type: &'static str,
    /// The headers beside that of the kind, by name.
    pub headers: Vec<(&'static str, String)>,
    /// The content of the response.
    pub body: String,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request is answered with this.
    Now(Response),
    /// The request is to be asked again, as [`Request::since`](crate::Request::since) this ETag, once
    /// something was announced; when the time is over [`without waiting`](crate::Request::without_waiting).
    Later {
        /// The ETag of what it was when the request came.
        etag: String,
        /// Time for which whoever asks waits; `None`: as long as it takes.
        within: Option<Duration>,
    },
}

impl Response {
    /// An answer with status 200 and this plain text.
    pub(crate) fn text(body: impl Into<String>) -> Self {
        Self { status: 200, content_type: "text/plain", headers: Vec::new(), body: body.into() }
    }

    /// A JSON value.
    pub(crate) fn json(body: impl Into<String>) -> Self {
        Self { content_type: "application/json", ..Self::text(body) }
    }

    /// This response with another status.
    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// This response with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The value of a header, by its name as it is written here.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }
}
