//! Public name of a token, by which the token can be revoked; the name itself gives no access.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};

use crate::token::{to_hex, unhex_bytes};

/// Prefix of a token's name in the certificates of workers that joined with it.
const SCHEME: &str = "dormouse:token/";

/// Public name of a token: the first 64 bits of the SHA-256 of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId([u8; 8]);

impl TokenId {
    pub(crate) fn of_text(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        Self(id)
    }

    pub(crate) fn uri(self) -> String {
        format!("{SCHEME}{self}")
    }

    /// The name of the token with which the worker of a certificate joined; `None`: the certificate is of an older
    /// version.
    #[must_use]
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        certificate.valid_uri_names().find_map(|uri| uri.strip_prefix(SCHEME)?.parse().ok())
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl FromStr for TokenId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = unhex_bytes(text).and_then(|bytes| bytes.try_into().ok());
        id.map(Self).ok_or_else(|| {
            format!(
                "`{text}` is no token's name, which has 16 hexadecimal digits: audit.jsonl has them"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Role, Token};

    #[test]
    fn a_token_has_a_name_that_does_not_show_it() {
        let new = || {
            let authority = Token::of_nobody().authority;
            Token::generate(Role::Worker, authority, Duration::from_secs(60)).expect("random bytes")
        };
        let token = new();
        let name = token.id().to_string();
        assert_eq!(name.parse(), Ok(token.id()));
        assert!(name.len() == 16 && !token.line().contains(&name), "{name}");
        assert_ne!(new().id(), token.id());
        for nonsense in ["", "xyz", "00", "0011223344556677889"] {
            assert!(nonsense.parse::<TokenId>().is_err(), "{nonsense}");
        }
    }
}
