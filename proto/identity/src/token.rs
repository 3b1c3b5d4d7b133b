//! Tokens: a line of text that names the authority to trust and proves its bearer's role.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use constant_time_eq::constant_time_eq;
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use tonic::metadata::AsciiMetadataValue;

use crate::{IdentityError, Role};

/// Metadata key of the token in a gRPC call.
pub const TOKEN_KEY: &str = "dormouse-token";
/// Prefix of a token: the version of its format.
const VERSION: &str = "dm1";

/// SHA-256 of an authority's certificate (DER), by which the run's coordinator is recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthorityFingerprint([u8; 32]);

impl AuthorityFingerprint {
    /// Fingerprint of this certificate (DER).
    #[must_use]
    pub fn from_certificate(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Debug for AuthorityFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

/// A token of a run. Its text is `dm1.ROLE.EXPIRY.AUTHORITY.SECRET` on one line of a file: EXPIRY
/// is in seconds since 1970, AUTHORITY and SECRET have 64 hexadecimal digits each.
#[derive(Clone)]
pub struct Token {
    /// Role of the token's bearer.
    pub role: Role,
    /// Fingerprint of the authority whose certificate the coordinator must show.
    pub authority: AuthorityFingerprint,
    /// Expiry in seconds since 1970.
    pub expires: u64,
    secret: [u8; 32],
}

/// Errors of parsing a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is a token of a version without certificates.
    #[error(
        "it holds a bare secret of an old version, which can't prove who the coordinator is: \
         `dormouse identity DIR` makes an identity whose file `secret` can"
    )]
    Bare,
    /// The text is not a token.
    #[error("it does not hold a token of a run, which is one line that begins with `dm1.`")]
    Nonsense,
}

impl Token {
    /// Generates a token with this validity.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn generate(
        role: Role,
        authority: AuthorityFingerprint,
        valid: Duration,
    ) -> Result<Self, IdentityError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|source| IdentityError::Chance { source: source.into() })?;
        Ok(Self { role, authority, expires: now_s().saturating_add(valid.as_secs()), secret })
    }

    /// A token that gives no access, for a client that connects to no coordinator.
    #[must_use]
    pub const fn of_nobody() -> Self {
        Self {
            role: Role::Worker,
            authority: AuthorityFingerprint([0; 32]),
            expires: u64::MAX,
            secret: [0; 32],
        }
    }

    fn text(&self) -> String {
        let (authority, secret) = (to_hex(&self.authority.0), to_hex(&self.secret));
        format!("{VERSION}.{}.{}.{authority}.{secret}", self.role, self.expires)
    }

    /// Public name of the token.
    #[must_use]
    pub fn id(&self) -> TokenId {
        TokenId::of_text(&self.text())
    }

    /// Text of the token, as a line of a file.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}\n", self.text())
    }

    /// The token as gRPC metadata, marked as sensitive so that libraries don't print it.
    #[must_use]
    pub fn header(&self) -> Option<AsciiMetadataValue> {
        let mut value = AsciiMetadataValue::try_from(self.text()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// True if the text is this token; takes constant time.
    #[must_use]
    pub fn is(&self, carried: &[u8]) -> bool {
        constant_time_eq(self.text().as_bytes(), carried)
    }

    /// True if the token has expired.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        now_s() >= self.expires
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim_ascii();
        if from_hex(text).is_some() {
            return Err(TokenError::Bare);
        }
        let parts: Vec<_> = text.split('.').collect();
        let [VERSION, role, expires, authority, secret] = parts[..] else {
            return Err(TokenError::Nonsense);
        };
        let token = || {
            Some(Self {
                role: role.parse().ok()?,
                authority: AuthorityFingerprint(from_hex(authority)?),
                expires: expires.parse().ok()?,
                secret: from_hex(secret)?,
            })
        };
        token().ok_or(TokenError::Nonsense)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, not shown)", self.role)
    }
}

/// Seconds since 1970 on this host's clock.
#[must_use]
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    unhex_bytes(text)?.try_into().ok()
}

pub(crate) fn unhex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let (pairs, []) = digits.as_ref()?.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect()
}

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
                "`{text}` is not the name of a token, which has 16 hexadecimal digits: audit.jsonl has them"
            )
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Role, Token};

    #[test]
    fn a_token_reads_back_and_is_not_shown() {
        let authority = AuthorityFingerprint::from_certificate(b"certificate");
        let hour = Duration::from_secs(3600);
        let token = Token::generate(Role::Observer, authority, hour).unwrap();
        let line = token.line();
        assert!(line.starts_with("dm1.observer.") && line.lines().count() == 1, "{line}");
        let read: Token = line.parse().unwrap();
        let header = token.header().unwrap();
        assert!(read.is(header.as_bytes()) && read.authority == authority && !read.has_expired());
        let other = Token::generate(Role::Observer, authority, hour).unwrap();
        assert!(!other.is(header.as_bytes()));
        let secret = line.trim().rsplit('.').next().unwrap();
        assert!(!format!("{token:?} {header:?}").contains(secret));
        let over = Token { expires: now_s() - 1, ..token };
        assert!(over.has_expired() && !over.is(header.as_bytes()));
    }

    #[test]
    fn a_bare_secret_is_told_from_nonsense() {
        assert_eq!("a5".repeat(32).parse::<Token>().unwrap_err(), TokenError::Bare);
        let (hash, more) = ("a5".repeat(32), "a5".repeat(33));
        for nonsense in [
            String::new(),
            more.clone(),
            "é".repeat(32),
            format!("dm2.worker.1.{hash}.{hash}"),
            format!("dm1.king.1.{hash}.{hash}"),
            format!("dm1.worker.x.{hash}.{hash}"),
            format!("dm1.worker.1.{hash}.{more}"),
            format!("dm1.worker.1.{hash}.{hash}.{hash}"),
        ] {
            assert_eq!(nonsense.parse::<Token>().unwrap_err(), TokenError::Nonsense, "{nonsense}");
        }
    }

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
