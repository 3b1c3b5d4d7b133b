//! Requests in terms of HTTP.

/// HTTP method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// GET: read the content.
    Get,
    /// HEAD: read only the headers.
    Head,
    /// PUT: issue a token.
    Put,
    /// POST: accept the body.
    Post,
    /// Any other method; it is never supported.
    Other,
}

/// An HTTP request of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method of the request.
    pub method: HttpMethod,
    /// The path, with a leading slash.
    pub path: String,
    /// Names and values of the query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Names, in lower case, and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The content of the request.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// A request for this path and query, without headers and body.
    #[must_use]
    pub fn new(method: HttpMethod, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode_escapes(name), decode_escapes(value))
        };
        let query = query.split('&').filter(|part| !part.is_empty()).map(pair).collect();
        Self { method, path: path.to_owned(), query, headers: Vec::new(), body: Vec::new() }
    }

    /// The request with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// The first header with this lower-case name.
    #[must_use]
    pub fn find_header(&self, name: &str) -> Option<&str> {
        first_value(&self.headers, name)
    }

    /// The first value of this name in the query.
    #[must_use]
    pub fn find_query(&self, name: &str) -> Option<&str> {
        first_value(&self.query, name)
    }

    /// True if this query parameter is `true`.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.find_query(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// True if the request came through a proxy, such as when a program is tricked into sending a stranger's request.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.find_header("x-forwarded-for").is_some()
    }

    /// True if the method only reads.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.method, HttpMethod::Get | HttpMethod::Head)
    }

    /// Non-empty parts of the path between its slashes.
    pub(crate) fn path_parts(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }

    /// The request, changed so that it is answered once the resource no longer has this ETag.
    #[must_use]
    pub fn changed_since(mut self, etag: String) -> Self {
        self.query.retain(|(name, _)| name != "last_etag");
        self.query.push(("last_etag".to_owned(), etag));
        self
    }

    /// The request, changed so that it is answered at once.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.query.retain(|(name, _)| name != "wait_for_change");
        self
    }
}

fn first_value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

/// A part of a query with its escapes decoded; invalid escapes stay.
fn decode_escapes(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| first == b'%');
        let escaped = escaped.and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let request = HttpRequest::new(HttpMethod::Get, "/a/b?x=1%202&y&z=%zz%");
        assert_eq!(request.path, "/a/b");
        assert_eq!(request.find_query("x"), Some("1 2"));
        assert_eq!(request.find_query("y"), Some(""));
        assert_eq!(request.find_query("z"), Some("%zz%"));
        assert_eq!(request.find_query("w"), None);
    }

    #[test]
    fn one_that_waits_can_be_answered_later() {
        let request = HttpRequest::new(HttpMethod::Get, "/?wait_for_change=true&last_etag=1");
        let request = request.changed_since("2".to_owned());
        assert_eq!(
            (request.find_query("last_etag"), request.is_set("wait_for_change")),
            (Some("2"), true)
        );
        assert!(!request.without_waiting().is_set("wait_for_change"));
    }
}
