//! The secret of a run: whoever has it may speak as one of its workers.

use std::fmt;
use std::str::FromStr;

use constant_time_eq::constant_time_eq;
use tonic::metadata::AsciiMetadataValue;

/// Metadata key under which every call carries the secret.
pub const SECRET_KEY: &str = "dormouse-secret";
/// Metadata key under which a call about a checkpoint says which host of the run it is about.
pub const HOST_KEY: &str = "dormouse-host";

/// The secret of a run. As text it is 64 hexadecimal digits, and one line of a file.
#[derive(Clone)]
pub struct Secret(String);

/// The text should be a secret and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not hold the secret of a run, which is 64 hexadecimal digits")]
pub struct SecretError;

impl Secret {
    /// The secret made of these bytes, which nobody must be able to guess.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        Self(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }

    /// The secret as the line of a file.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}\n", self.0)
    }

    /// The secret as the metadata of a call, marked so that libraries don't show it.
    #[must_use]
    pub fn header(&self) -> Option<AsciiMetadataValue> {
        let mut value = AsciiMetadataValue::try_from(self.0.as_str()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Whether a call carried this secret. The time that this takes tells nothing of the secret.
    #[must_use]
    pub fn is(&self, carried: &AsciiMetadataValue) -> bool {
        constant_time_eq(self.0.as_bytes(), carried.as_bytes())
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let text = text.trim_ascii();
        let whole = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if whole { Ok(Self(text.to_ascii_lowercase())) } else { Err(SecretError) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_reads_back_and_is_not_shown() {
        let secret = Secret::new([0xa5; 32]);
        assert_eq!(secret.line(), format!("{}\n", "a5".repeat(32)));
        let read: Secret = secret.line().parse().expect("its own line");
        let header = secret.header().expect("hexadecimal digits");
        assert!(read.is(&header) && !Secret::new([0xa4; 32]).is(&header));
        assert!(!format!("{secret:?} {header:?}").contains("a5a5"));
        for nonsense in ["", "a5", &"x".repeat(64), &"a5".repeat(33)] {
            assert_eq!(nonsense.parse::<Secret>().err(), Some(SecretError), "{nonsense}");
        }
    }
}
