//! Amounts of memory.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::decimal_times;

/// An amount of memory in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Bytes(u64);

impl Bytes {
    /// An amount of zero bytes.
    pub const ZERO: Self = Self(0);

    /// An amount of `n` bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The amount in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the amount is zero.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The amount in mebibytes, for people and plots only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / f64::from(1 << 20)
    }

    /// This amount less `other`; zero if this amount is smaller.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.0 {
            n if n >= 1 << 30 => (self.as_mib() / 1024.0, "GiB"),
            n if n >= 1 << 20 => (self.as_mib(), "MiB"),
            n => return write!(f, "{n} B"),
        };
        let text = format!("{size:.2}");
        write!(f, "{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Reason why a text is not an amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an amount of memory ({why}); write it like 3.75 GiB, 10.06MB or 512 KiB")]
pub struct ParseBytesError {
    text: String,
    why: &'static str,
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Parses a number with a unit: `B`, `kB`/`KB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB`.
    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let fail = |why| ParseBytesError { text: text.to_owned(), why };
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(fail("it is negative"));
        }
        let digits =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let scale = match unit.trim() {
            "B" => 1,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1_u64 << 30,
            "" => return Err(fail("its unit is missing")),
            _ => return Err(fail("its unit is not one of B, kB, MB, GB, KiB, MiB, GiB")),
        };
        decimal_times(number, scale).map(Self).ok_or_else(|| fail("its number can't be read"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!("3.75 GiB".parse(), Ok(Bytes(4_026_531_840)));
        assert_eq!("10.06MB".parse(), Ok(Bytes(10_060_000)));
        for text in ["", "5", "-1 MB", "MB", "1 XB", "1..2 MB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
