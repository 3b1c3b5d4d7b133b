//! Requests, as HTTP brings them.

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The content under the path.
    Get,
    /// Asks for the headers of an answer, without its content.
    Head,
    /// A token, at the path of those.
    Put,
    /// To take what is sent.
    Post,
    /// Anything else, which nobody here answers.
    Other,
}

/// A request of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method of the request.
    pub method: Method,
    /// The path, with a leading slash.
    pub path: String,
    /// Names and values of the query, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// Names, in small letters, and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The content of the request.
    pub body: Vec<u8>,
}

impl Request {
    /// A request for this path, with a query where it has one, without headers and a body.
    #[must_use]
    pub fn new(method: Method, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(name), decoded(value))
        };
        let query = query.split('&').filter(|part| !part.is_empty()).map(pair).collect();
        Self { method, path: path.to_owned(), query, headers: Vec::new(), body: Vec::new() }
    }

    /// This request with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// The first header of this name, in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        value(&self.headers, name)
    }

    /// The first value of this name in the query.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        value(&self.query, name)
    }

    /// Whether the query says `true` of this name.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.query(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether it came by way of a proxy, as whoever is made to ask for a stranger would send it.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.header("x-forwarded-for").is_some()
    }

    /// Whether only reading is asked for.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head)
    }

    /// The parts of the path between its slashes, without empty ones.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }

    /// This request as one that is answered once its subject differs from what had this ETag.
    #[must_use]
    pub fn since(mut self, etag: String) -> Self {
        self.query.retain(|(name, _)| name != "last_etag");
        self.query.push(("last_etag".to_owned(), etag));
        self
    }

    /// This request as one that is answered at once.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.query.retain(|(name, _)| name != "wait_for_change");
        self
    }
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

/// A part of a query without its escapes; what is no escape stays as it is.
fn decoded(text: &str) -> String {
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
        let request = Request::new(Method::Get, "/a/b?x=1%202&y&z=%zz%");
        assert_eq!(request.path, "/a/b");
        assert_eq!(request.query("x"), Some("1 2"));
        assert_eq!(request.query("y"), Some(""));
        assert_eq!(request.query("z"), Some("%zz%"));
        assert_eq!(request.query("w"), None);
    }

    #[test]
    fn one_that_waits_can_be_answered_later() {
        let request = Request::new(Method::Get, "/?wait_for_change=true&last_etag=1");
        let request = request.since("2".to_owned());
        assert_eq!(
            (request.query("last_etag"), request.is_set("wait_for_change")),
            (Some("2"), true)
        );
        assert!(!request.without_waiting().is_set("wait_for_change"));
    }
}
