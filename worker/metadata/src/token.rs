//! Tokens of EC2's metadata service, version 2.
//!
//! A token contains its expiry, authenticated by the VM's key, so that issued tokens need no
//! storage and can't exhaust it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE};

use crate::UnixTime;

/// The longest validity of a token, in seconds: six hours.
pub(crate) const LONGEST: u64 = 21_600;

/// Secret key of one VM that authenticates its tokens; tokens of other VMs are invalid.
#[derive(Clone)]
pub struct TokenSecret([u8; 32]);

impl TokenSecret {
    /// Makes a key from the given random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A token valid until this instant: 56 characters.
    pub(crate) fn issue_token(&self, until: UnixTime) -> String {
        let until = until.as_micros().to_be_bytes();
        let mac = blake3::keyed_hash(&self.0, &until);
        URL_SAFE.encode([until.as_slice(), mac.as_bytes().as_slice()].concat())
    }

    /// Remaining validity of a token in seconds; `None`: it is invalid or expired.
    pub(crate) fn seconds_left(&self, token: &str, now: UnixTime) -> Option<u64> {
        let bytes = URL_SAFE.decode(token).ok()?;
        let (until, mac) = bytes.split_first_chunk::<8>()?;
        let mac: [u8; 32] = mac.try_into().ok()?;
        // Compared in constant time.
        let is_ours = blake3::keyed_hash(&self.0, until) == blake3::Hash::from_bytes(mac);
        let until = UnixTime::from_micros(u64::from_be_bytes(*until));
        (is_ours && until > now).then(|| until.seconds_since(now))
    }
}

impl std::fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_its_time_and_with_its_key() {
        let (key, other) = (TokenSecret::new([1; 32]), TokenSecret::new([2; 32]));
        let at = |seconds: u64| UnixTime::from_micros(seconds * 1_000_000);
        let token = key.issue_token(at(100));
        assert_eq!(token.len(), 56);
        assert_eq!(
            (key.seconds_left(&token, at(40)), key.seconds_left(&token, at(100))),
            (Some(60), None)
        );
        assert_eq!(other.seconds_left(&token, at(40)), None);
        let mut forged = token.clone();
        forged.replace_range(..1, if token.starts_with('B') { "C" } else { "B" });
        assert_eq!(key.seconds_left(&forged, at(40)), None);
        assert_eq!(key.seconds_left("", at(40)), None);
    }
}
