//! Fractions of a whole, in parts per million.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fraction in parts per million; more than a million is more than the whole.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ppm(u32);

impl Ppm {
    /// The fraction of nothing: 0 parts per million.
    pub const ZERO: Self = Self(0);
    /// The whole: a million parts per million.
    pub const ONE: Self = Self(1_000_000);

    /// A fraction of `ppm` parts per million.
    #[must_use]
    pub const fn new(ppm: u32) -> Self {
        Self(ppm)
    }

    /// The nearest fraction to `x`; `None` if `x` is negative, not finite or above the greatest fraction (4294).
    #[must_use]
    pub fn from_f64(x: f64) -> Option<Self> {
        let ppm = (x * 1e6).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked in the same expression"
        )]
        (ppm >= 0.0 && ppm <= f64::from(u32::MAX)).then_some(Self(ppm as u32))
    }

    /// The fraction in parts per million.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The fraction as a number; one is the whole.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// This fraction of `n`, rounded down, saturating.
    #[must_use]
    #[inline]
    pub fn scale_number(self, n: u64) -> u64 {
        // A division of 128 bits takes ten times as long.
        if let Some(product) = n.checked_mul(u64::from(self.0)) {
            return product / 1_000_000;
        }
        u64::try_from(u128::from(n) * u128::from(self.0) / 1_000_000).unwrap_or(u64::MAX)
    }

    /// The difference between the whole and this fraction; zero if the fraction is at least the whole.
    #[must_use]
    pub const fn rest_of_whole(self) -> Self {
        Self(1_000_000_u32.saturating_sub(self.0))
    }
}

impl fmt::Display for Ppm {
    /// Writes the fraction as a percentage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.4}", f64::from(self.0) / 1e4);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_exact_also_of_what_needs_128_bits() {
        for ppm in [0, 1, 333_333, 1_000_000, u32::MAX] {
            for n in [0, 1, 999_999, 1 << 40, u64::MAX / 4_294, u64::MAX] {
                let exact = u128::from(n) * u128::from(ppm) / 1_000_000;
                let exact = u64::try_from(exact).unwrap_or(u64::MAX);
                assert_eq!(Ppm::new(ppm).scale_number(n), exact, "{ppm} of {n}");
            }
        }
    }
}
