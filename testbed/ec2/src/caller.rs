//! The caller of a request: the account, region and service that its credential names.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

/// The algorithm of a signature of version 4.
pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The region of a request that names none.
const DEFAULT_REGION: &str = "us-east-1";
/// The access key of a request without one; such a request is refused if signatures are checked.
const NO_KEY: &str = "000000000000";

/// Content of a request's `Authorization` header (signature version 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallerScope {
    /// The access key, which is the account.
    pub(crate) key: String,
    /// The account of an instance that calls with its role's credentials; `None`: a client that is not an instance.
    pub(crate) of_instance: Option<String>,
    /// The day of the signature, like `20261127`.
    pub(crate) day: String,
    pub(crate) region: String,
    /// The service in the signature's scope, like `ec2`; empty if none is named.
    pub(crate) service: String,
    /// The names of the headers that are signed, lower case, with `;` between them.
    pub(crate) signed_headers: String,
    /// The signature, in hexadecimal.
    pub(crate) signature: String,
}

impl CallerScope {
    /// Reads the `Authorization` header; `None` if the header is present and is not of signature version 4.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let Some(header) = headers.get(AUTHORIZATION) else { return Some(Self::nobody(NO_KEY)) };
        let fields = header.to_str().ok()?.trim().strip_prefix(ALGORITHM)?;
        let field = |name: &str| {
            fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='))
        };
        // An access key has no slash.
        let [key, day, region, service, "aws4_request"] =
            field("Credential")?.split('/').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let all = [key, day, region, service];
        let is_plain = |text: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@+=".contains(&b);
            (1..=128).contains(&text.len()) && text.bytes().all(plain)
        };
        all.iter().all(|text| is_plain(text)).then_some(())?;
        let [key, day, region, service] = all.map(str::to_owned);
        let signed_headers = field("SignedHeaders")?.to_owned();
        let signature = field("Signature")?.to_owned();
        Some(Self { key, of_instance: None, day, region, service, signed_headers, signature })
    }

    /// The caller of a request without a signature.
    pub(crate) fn nobody(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            of_instance: None,
            day: String::new(),
            region: DEFAULT_REGION.to_owned(),
            service: String::new(),
            signed_headers: String::new(),
            signature: String::new(),
        }
    }

    /// The account's twelve digits: the access key itself if it has that form, else a digest of it.
    pub(crate) fn account(&self) -> String {
        if let Some(account) = &self.of_instance {
            return account.clone();
        }
        if self.key.len() == 12 && self.key.bytes().all(|b| b.is_ascii_digit()) {
            return self.key.clone();
        }
        let digest = Sha256::digest(self.key.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        format!("{:012}", number % 1_000_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Option<CallerScope> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().expect("a header"));
        CallerScope::of_headers(&headers)
    }

    #[test]
    fn the_credential_names_account_region_and_service() {
        let caller = read(
            "AWS4-HMAC-SHA256 Credential=AKIA1/20261127/eu-west-1/ec2/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=00ff",
        )
        .expect("it is right");
        assert_eq!(
            [&*caller.key, &*caller.region, &*caller.service, &*caller.signed_headers],
            ["AKIA1", "eu-west-1", "ec2", "host;x-amz-date"]
        );
        assert_eq!(caller.account().len(), 12);
        assert_ne!(caller.account(), CallerScope::nobody("AKIA2").account());
        assert_eq!(CallerScope::nobody("123456789012").account(), "123456789012");
    }

    #[test]
    fn another_kind_of_authorization_is_none() {
        for header in [
            "Basic YTpi",
            "AWS4-HMAC-SHA256",
            "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request",
            "AWS4-HMAC-SHA256 Credential=a/b/c/aws4_request, SignedHeaders=host, Signature=00",
            "AWS4-HMAC-SHA256 Credential=a/b/<c>/d/aws4_request, SignedHeaders=host, Signature=00",
        ] {
            assert_eq!(read(header), None, "{header}");
        }
        let nobody = CallerScope::of_headers(&HeaderMap::new()).expect("no header is right");
        assert_eq!(nobody.account(), "000000000000");
    }
}
