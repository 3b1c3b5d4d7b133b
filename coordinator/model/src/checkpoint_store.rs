//! Bucket that stores the checkpoints of a live run outside its folder.

use std::fmt;

use dormouse_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bucket of S3, or of a server that speaks its protocol, which keeps the checkpoints of a live run in addition to the
/// coordinator's folder. The coordinator takes the credentials from its environment: `AWS_ACCESS_KEY_ID` and
/// `AWS_SECRET_ACCESS_KEY`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CheckpointStore {
    /// The bucket and the prefix of all keys in it: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    pub url: BucketUrl,
    /// Address of the server, as `http://HOST:PORT` or `https://HOST`; if it is not given, `AWS_ENDPOINT_URL`, else Amazon's
    /// server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<ServerAddress>,
    /// The region of the bucket; `AWS_REGION` if it is not given, else `us-east-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Real time for which a failing request is retried, and after which a request without an answer is given up. The upload of a
    /// part of 8 MiB has to fit in it.
    #[serde(default = "half_a_minute")]
    pub timeout: Span,
}

fn half_a_minute() -> Span {
    Span::from_secs(30)
}

/// A bucket with a key prefix: `s3://BUCKET/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BucketUrl {
    bucket: String,
    prefix: String,
}

impl BucketUrl {
    /// The name of the bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Prefix of all keys, without a slash at either end; may be empty.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix } = self;
        let slash = if prefix.is_empty() { "" } else { "/" };
        write!(f, "s3://{bucket}{slash}{prefix}")
    }
}

impl TryFrom<String> for BucketUrl {
    type Error = String;

    fn try_from(said: String) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{why}; write s3://BUCKET or s3://BUCKET/PREFIX"));
        let Some(rest) = said.strip_prefix("s3://") else {
            return wrong("it does not begin with s3://");
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_name) {
            return wrong(
                "a bucket's name has 3 to 63 small letters, digits, hyphens, underscores and dots",
            );
        }
        let prefix = prefix.trim_end_matches('/');
        let is_part = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._=".contains(c);
            !part.is_empty() && part != "." && part != ".." && part.chars().all(plain)
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return wrong(
                "a prefix is letters, digits, hyphens, underscores and dots between slashes",
            );
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl From<BucketUrl> for String {
    fn from(url: BucketUrl) -> Self {
        url.to_string()
    }
}

impl JsonSchema for BucketUrl {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BucketUrl".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^s3://[a-z0-9._-]{3,63}(/[A-Za-z0-9._=-]+)*/?$" })
    }
}

/// Address of a server: `http://HOST:PORT` or `https://HOST`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerAddress(String);

impl ServerAddress {
    /// The address as the user wrote it, without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the connection is not encrypted (http).
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        self.0.starts_with("http://")
    }
}

impl TryFrom<String> for ServerAddress {
    type Error = String;

    fn try_from(said: String) -> Result<Self, String> {
        let address = said.trim_end_matches('/');
        let host = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
        let is_host = |host: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
            host.contains(|c: char| c.is_ascii_alphanumeric()) && host.chars().all(plain)
        };
        match host.is_some_and(is_host) {
            true => Ok(Self(address.to_owned())),
            false => {
                Err("an endpoint is http://HOST:PORT or https://HOST, without user or path"
                    .to_owned())
            }
        }
    }
}

impl From<ServerAddress> for String {
    fn from(endpoint: ServerAddress) -> Self {
        endpoint.0
    }
}

impl JsonSchema for ServerAddress {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Endpoint".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^https?://[A-Za-z0-9._:\\[\\]-]+/*$" })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_read_with_its_prefix_and_written_again() {
        for (said, bucket, prefix, again) in [
            ("s3://runs", "runs", "", "s3://runs"),
            ("s3://my.runs-2/a/b_c=d/", "my.runs-2", "a/b_c=d", "s3://my.runs-2/a/b_c=d"),
        ] {
            let url = BucketUrl::try_from(said.to_owned()).unwrap();
            assert_eq!((url.bucket(), url.prefix(), &*url.to_string()), (bucket, prefix, again));
        }
        for wrong in [
            "runs",
            "s3://",
            "s3://ab",
            "s3://Runs",
            "s3://runs//x",
            "s3://runs/../x",
            "s3://ru ns",
            "http://runs",
        ] {
            let why = BucketUrl::try_from(wrong.to_owned()).unwrap_err();
            assert!(why.ends_with("write s3://BUCKET or s3://BUCKET/PREFIX"), "{wrong}: {why}");
        }
    }

    #[test]
    fn an_endpoint_has_a_scheme_and_no_secrets() {
        let local = ServerAddress::try_from("http://127.0.0.1:9000/".to_owned()).unwrap();
        assert_eq!((local.as_str(), local.is_in_clear()), ("http://127.0.0.1:9000", true));
        assert!(
            !ServerAddress::try_from("https://s3.example.org".to_owned()).unwrap().is_in_clear()
        );
        for wrong in
            ["127.0.0.1:9000", "http://", "http://user:word@host", "http://host/path", "ftp://host"]
        {
            assert!(ServerAddress::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
