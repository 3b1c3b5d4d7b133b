//! What went wrong with a bucket, in one line with the place and what to do.

use std::error::Error;
use std::io;

use dormouse_coordinator::ObjectError;

/// Most characters of a server's message that are shown.
const LONGEST: usize = 200;

/// Converts an error of the client of an existing bucket into one in words for the user.
pub(crate) fn explain(place: &str, error: &object_store::Error) -> ObjectError {
    let said = chain(error);
    let code = between(&said, "<Code>", "</Code>");
    let refused = |why: String| ObjectError::Refused(format!("{place} {why}"));
    let credentials = |code: &str| {
        refused(format!(
            "refuses the credentials ({code}); check that AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY are those of a user who may list, read, write and delete there"
        ))
    };
    match code {
        Some("NoSuchBucket") => {
            return refused(
                "does not exist (NoSuchBucket); make the bucket, or name another with \
                 live.checkpoint-store.url"
                    .to_owned(),
            );
        }
        Some(
            code @ ("InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "AccessDenied"
            | "ExpiredToken"
            | "InvalidToken"
            | "NotSignedUp"),
        ) => return credentials(code),
        Some("NoSuchKey") => return ObjectError::Absent(format!("{place} has no such object")),
        Some("RequestTimeTooSkewed") => {
            return refused(
                "has another time than this host (RequestTimeTooSkewed); set the clock of this host".to_owned(),
            );
        }
        _ => {}
    }
    match error {
        object_store::Error::NotFound { .. } => {
            ObjectError::Absent(format!("{place} has no such object"))
        }
        object_store::Error::PermissionDenied { .. } => credentials("403"),
        object_store::Error::Unauthenticated { .. } => credentials("401"),
        _ => {
            let status = between(&said, "status code: ", ":")
                .or_else(|| between(&said, "with status ", ":"));
            match (code, status) {
                (code, Some(status)) if status.starts_with('5') => ObjectError::Unreachable(
                    format!("{place} fails ({}); see the server's log", code.unwrap_or(status)),
                ),
                (Some(code), _) => {
                    let message = between(&said, "<Message>", "</Message>").unwrap_or_default();
                    refused(format!(
                        "refuses ({code}: {}); see live.checkpoint-store",
                        shortened(message)
                    ))
                }
                (None, Some(status)) => refused(format!(
                    "refuses ({status}); check that live.checkpoint-store.endpoint is a server of S3"
                )),
                (None, None) => unanswered(place, &cause(error)),
            }
        }
    }
}

/// The error for a server that has not answered, with the cause.
fn unanswered(place: &str, cause: &str) -> ObjectError {
    ObjectError::Unreachable(if cause.contains("timed out") {
        format!(
            "{place} does not answer in time ({cause}); check that the server is running, or allow \
             more time with live.checkpoint-store.timeout"
        )
    } else if cause.contains("certificate") {
        format!(
            "{place} is not trusted ({cause}); set SSL_CERT_FILE to a file with the certificate of \
             its authority"
        )
    } else {
        format!(
            "{place} can't be reached ({cause}); check that the server is running, and \
             live.checkpoint-store.endpoint"
        )
    })
}

/// The messages of an error and of all its causes, joined.
fn chain(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        said.push(' ');
        said.push_str(&error.to_string());
        next = error.source();
    }
    said
}

/// Text of the first cause in an error's chain of causes that is an error of the operating system; if there is none,
/// of the last cause.
fn cause(error: &dyn Error) -> String {
    let (mut last, mut next) = (error.to_string(), error.source());
    while let Some(error) = next {
        last = error.to_string();
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.raw_os_error().is_some()) {
            break;
        }
        next = error.source();
    }
    shortened(&last)
}

/// The text without line breaks, cut to the longest length that is shown.
fn shortened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(why: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: why.to_owned().into() }
    }

    #[test]
    fn each_cause_has_its_remedy_in_one_line() {
        let place = "s3://runs at http://127.0.0.1:9000";
        for (said, remedy) in [
            ("status code: 404: <Error><Code>NoSuchBucket</Code>\n</Error>", "make the bucket"),
            ("status code: 403: <Code>SignatureDoesNotMatch</Code>", "AWS_SECRET_ACCESS_KEY"),
            (
                "status code: 400: <Code>MalformedXML</Code><Message>a\nb</Message>",
                "(MalformedXML: a b)",
            ),
            ("Server returned non-2xx status code: 503 Service Unavailable: ", "server's log"),
            ("Server returned non-2xx status code: 301 Moved: ", "is a server of S3"),
            (
                "connection refused",
                "can't be reached (connection refused); check that the server is running",
            ),
            ("operation timed out", "live.checkpoint-store.timeout"),
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
        ] {
            let why = explain(place, &generic(said)).to_string();
            assert!(why.starts_with(place) && why.contains(remedy), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
        let absent = generic("status code: 404: <Code>NoSuchKey</Code>");
        assert!(matches!(explain(place, &absent), ObjectError::Absent(_)));
    }
}
