//! Check that a request is signed with the secret of its access key (signature version 4).

use std::collections::BTreeMap;
use std::path::Path;

use constant_time_eq::constant_time_eq;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::http::request::Parts;
use sha2::{Digest as _, Sha256};

use crate::caller::{ALGORITHM, CallerScope};

/// Greatest accepted difference between the date of a signature and the host's or the run's date, in seconds.
const TOLERANCE_S: i64 = 900;

/// The secret of each access key, read from a file.
#[derive(Clone)]
pub struct AccessSecrets(BTreeMap<String, String>);

/// Reasons why a file of secrets can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The file of keys can't be read.
    #[error("{path} can't be read: {source}")]
    Read {
        /// Path of the file of keys.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line of the file of keys is not an access key and its secret.
    #[error("{path}, line {line}: write an access key and its secret, with a space between them")]
    Line {
        /// Path of the file of keys.
        path: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// The file has no key, so that no client could make calls.
    #[error("{path} has no access key: write a line with a key and its secret")]
    Empty {
        /// Path of the file of keys.
        path: String,
    },
}

impl std::fmt::Debug for AccessSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AccessSecrets").field(&self.0.len()).finish()
    }
}

impl AccessSecrets {
    /// Reads a file with a line for each access key: the key, a space, its secret.
    ///
    /// # Errors
    ///
    /// [`SecretsError`].
    pub fn read(path: &Path) -> Result<Self, SecretsError> {
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| SecretsError::Read { path: name(), source })?;
        let mut secrets = BTreeMap::new();
        for (line, text) in text.lines().enumerate() {
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                [] => {}
                [word, ..] if word.starts_with('#') => {}
                [key, secret] => drop(secrets.insert(key.to_owned(), secret.to_owned())),
                _ => return Err(SecretsError::Line { path: name(), line: line + 1 }),
            }
        }
        if secrets.is_empty() {
            return Err(SecretsError::Empty { path: name() });
        }
        Ok(Self(secrets))
    }

    /// Whether a request has the right signature of its access key, made near one of these dates (seconds since 1970).
    pub(crate) fn are_shown(
        &self,
        caller: &CallerScope,
        parts: &Parts,
        body: &[u8],
        dates: [i64; 2],
    ) -> bool {
        self.0.get(&caller.key).is_some_and(|secret| is_signed(secret, caller, parts, body, dates))
    }
}

/// Whether a request has the right signature of this secret, made near one of these dates (seconds since 1970).
pub(crate) fn is_signed(
    secret: &str,
    caller: &CallerScope,
    parts: &Parts,
    body: &[u8],
    dates: [i64; 2],
) -> bool {
    let wanted = signature_of(secret, caller, parts, body, dates);
    wanted.is_some_and(|it| constant_time_eq(it.as_bytes(), caller.signature.as_bytes()))
}

/// The signature that a request should have; `None`: a part that has to be signed is missing, or the request's date is
/// too far off.
pub(crate) fn signature_of(
    secret: &str,
    caller: &CallerScope,
    parts: &Parts,
    body: &[u8],
    dates: [i64; 2],
) -> Option<String> {
    let header = |name: &str| {
        let all: Option<Vec<&str>> =
            parts.headers.get_all(name).iter().map(|value| value.to_str().ok()).collect();
        Some(all?.join(",")).filter(|_| parts.headers.contains_key(name))
    };
    let names: Vec<&str> = caller.signed_headers.split(';').collect();
    if !(names.contains(&"host") && names.contains(&"x-amz-date")) {
        return None;
    }
    let date = header("x-amz-date")?;
    let at = seconds_of_date(&date)?;
    let is_near = dates.iter().any(|near| at.abs_diff(*near) <= TOLERANCE_S.unsigned_abs());
    (is_near && date.starts_with(&caller.day)).then_some(())?;
    let mut headers = String::new();
    for name in &names {
        let value = header(name)?;
        let value: Vec<&str> = value.split_whitespace().collect();
        headers.push_str(&format!("{name}:{}\n", value.join(" ")));
    }
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{}\n{}",
        parts.method,
        parts.uri.path(),
        sorted_query(parts.uri.query().unwrap_or_default()),
        caller.signed_headers,
        hexadecimal(&Sha256::digest(body)),
    );
    let CallerScope { day, region, service, .. } = caller;
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let digest = hexadecimal(&Sha256::digest(canonical.as_bytes()));
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{digest}");
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in [day, region, service, "aws4_request", &text] {
        key = keyed_digest(&key, part.as_bytes())?;
    }
    Some(hexadecimal(&key))
}

fn keyed_digest(key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac.finalize().into_bytes().to_vec())
}

/// The parameters of a URL, still encoded, sorted as signatures require.
fn sorted_query(query: &str) -> String {
    let mut pairs: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    pairs.sort();
    pairs.join("&")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since 1970 of a date like `20261127T080000Z`.
fn seconds_of_date(date: &str) -> Option<i64> {
    let part = |from: usize, to: usize| date.get(from..to);
    let plain = format!(
        "{}-{}-{}T{}:{}:{}",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(9, 11)?,
        part(11, 13)?,
        part(13, 16)?
    );
    let is_right = date.len() == 16 && part(8, 9)? == "T";
    let micros = dormouse_ec2_wire::read_instant(&plain).filter(|_| is_right)?;
    Some(micros / 1_000_000)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    /// The example of AWS's page on the signing process ("GET, ListUsers"), signed for the service iam.
    fn example() -> (CallerScope, Parts) {
        let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
            SignedHeaders=content-type;host;x-amz-date, Signature=\
            5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        let request = Request::get("/?Version=2010-05-08&Action=ListUsers")
            .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
            .header("host", "iam.amazonaws.com")
            .header("x-amz-date", "20150830T123600Z")
            .header("authorization", scope)
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        (CallerScope::of_headers(&parts.headers).expect("it is right"), parts)
    }

    fn secrets() -> AccessSecrets {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned();
        AccessSecrets([("AKIDEXAMPLE".to_owned(), secret)].into())
    }

    #[test]
    fn the_example_of_aws_is_right_and_any_other_bit_wrong() {
        let (caller, parts) = example();
        let at = 1_440_938_160;
        let shown = |caller: &CallerScope, parts: &Parts, body: &[u8], at: i64| {
            secrets().are_shown(caller, parts, body, [0, at])
        };
        assert!(shown(&caller, &parts, b"", at));
        assert!(shown(&caller, &parts, b"", at + 900));
        assert!(!shown(&caller, &parts, b"", at + 901), "its date is too old");
        assert!(!shown(&caller, &parts, b"x", at), "another body");
        let other = CallerScope { region: "us-east-2".to_owned(), ..caller.clone() };
        assert!(!shown(&other, &parts, b"", at), "another region");
        let other = CallerScope { key: "AKIDOTHER".to_owned(), ..caller.clone() };
        assert!(!shown(&other, &parts, b"", at), "another key");
        let other = CallerScope { signed_headers: "host".to_owned(), ..caller };
        assert!(!shown(&other, &parts, b"", at), "the date is not signed");
    }
}
