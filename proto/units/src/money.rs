//! Money in integer nano-dollars, prices in nano-dollars an hour.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Ppm;
use crate::time::{Span, decimal_times};

/// An amount of money in nano-dollars (10⁻⁹ USD).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(i64);

/// A price in nano-dollars per hour.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Price(u64);

impl Money {
    /// An amount of no money.
    pub const ZERO: Self = Self(0);

    /// An amount of `nanos` nano-dollars.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The amount in nano-dollars.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The amount in dollars, for people and plots only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.as_usd())
    }
}

impl Price {
    /// A price of `nanos` nano-dollars per hour.
    #[must_use]
    pub const fn from_nanos_per_hour(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The nearest price to `usd` dollars an hour; `None` if that is negative, not finite or too large to be plausible.
    #[must_use]
    pub fn from_usd_per_hour(usd: f64) -> Option<Self> {
        let nanos = (usd * 1e9).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked in the same expression"
        )]
        (0.0..1e15).contains(&nanos).then_some(Self(nanos as u64))
    }

    /// The price in nano-dollars per hour.
    #[must_use]
    pub const fn as_nanos_per_hour(self) -> u64 {
        self.0
    }

    /// The price in dollars an hour, for people and plots only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_usd_per_hour(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The fraction `part` of this price.
    #[must_use]
    pub fn part(self, part: Ppm) -> Self {
        Self(part.scale_number(self.0))
    }

    /// Cost of `span` at this price, rounded down to a nano-dollar.
    #[must_use]
    pub fn for_span(self, span: Span) -> Money {
        let nanos = u128::from(self.0) * u128::from(span.as_micros()) / 3_600_000_000;
        Money(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}/h", self.as_usd_per_hour())
    }
}

/// Reason why a text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a price per hour; write dollars, like 0.105")]
pub struct ParsePriceError(String);

impl FromStr for Price {
    type Err = ParsePriceError;

    fn from_str(text: &str) -> Result<Self, ParsePriceError> {
        let digits = text.trim().trim_start_matches('$').trim_end_matches("/h");
        decimal_times(digits, 1_000_000_000).map(Self).ok_or_else(|| ParsePriceError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_costs_the_price() {
        let price: Price = "0.0297".parse().expect("a price");
        assert_eq!(price.for_span(Span::from_secs(3600)), Money::from_nanos(29_700_000));
        assert_eq!(price.for_span(Span::from_secs(1)), Money::from_nanos(8_250));
        assert!("-1".parse::<Price>().is_err());
    }
}
