//! Emulated time: instants and spans in microseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Ppm;

/// An instant of emulated time, in microseconds since the experiment began.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of emulated time, in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Span(u64);

impl Time {
    /// The beginning of the experiment.
    pub const ZERO: Self = Self(0);

    /// The instant `us` microseconds after the beginning.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// The instant `s` seconds after the beginning.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000)
    }

    /// The instant in microseconds since the beginning of the experiment.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The instant in seconds since the beginning of the experiment, for people and plots only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// Time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The earlier of two instants; `None` is an instant that never comes.
    #[must_use]
    pub fn sooner_of(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

impl Span {
    /// A span of no time.
    pub const ZERO: Self = Self(0);

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// A span of `s` seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000)
    }

    /// The nearest span to `s` seconds; `None` if negative, not finite or past 2^53 µs.
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Option<Self> {
        let us = (s * 1e6).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked in the same expression"
        )]
        (0.0..9_007_199_254_740_992.0).contains(&us).then_some(Self(us as u64))
    }

    /// The span in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span in seconds, for people and plots only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This span less `other`; zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `share` of this span, rounded down.
    #[must_use]
    pub fn part(self, share: Ppm) -> Self {
        Self(share.scale_number(self.0))
    }

    /// Time that work of this span at full speed takes at speed `share`, rounded up; `None` at
    /// speed zero.
    #[must_use]
    pub fn at_speed(self, share: Ppm) -> Option<Self> {
        if share == Ppm::ZERO {
            return None;
        }
        if share == Ppm::ONE {
            return Some(self);
        }
        // A division of 128 bits takes ten times as long.
        if let Some(product) = self.0.checked_mul(1_000_000) {
            return Some(Self(product.div_ceil(u64::from(share.get()))));
        }
        let us = (u128::from(self.0) * 1_000_000).div_ceil(u128::from(share.get()));
        u64::try_from(us).ok().map(Self)
    }

    /// Fraction of `whole` that this span is, rounded down and at most one; one if `whole` is zero.
    #[must_use]
    pub fn fraction_of(self, whole: Self) -> Ppm {
        if whole.0 == 0 {
            return Ppm::ONE;
        }
        // A division of 128 bits takes ten times as long.
        let ppm = match self.0.checked_mul(1_000_000) {
            Some(product) => u128::from(product / whole.0),
            None => u128::from(self.0) * 1_000_000 / u128::from(whole.0),
        };
        Ppm::new(u32::try_from(ppm.min(1_000_000)).unwrap_or(1_000_000))
    }

    /// The span times `n`; the greatest span if the product is too large.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    /// Subtracts a span from an instant; the result is at least the beginning of the experiment.
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// Writes the span as people do, without loss: `45m`, `1h30m`, `0.25s`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let (h, m, s) = (whole / 3600, whole / 60 % 60, whole % 60);
        if h > 0 {
            write!(f, "{h}h")?;
        }
        if m > 0 {
            write!(f, "{m}m")?;
        }
        if micros > 0 {
            let digits = format!("{micros:06}");
            write!(f, "{s}.{}s", digits.trim_end_matches('0'))
        } else if s > 0 || whole == 0 {
            write!(f, "{s}s")
        } else {
            Ok(())
        }
    }
}

/// Reason why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a length of time ({why}); write it like 45m, 90s, 1h30m or 0.5s")]
pub struct ParseSpanError {
    text: String,
    why: &'static str,
}

impl FromStr for Span {
    type Err = ParseSpanError;

    /// Parses numbers with units `us`, `ms`, `s`, `m` or `min`, `h`, `d`, one after the other, as in `1h30m`.
    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        let fail = |why| ParseSpanError { text: text.to_owned(), why };
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(fail("it is empty"));
        }
        if rest.starts_with('-') {
            return Err(fail("it is negative"));
        }
        let mut total = Self::ZERO;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, tail) = rest.split_at(digits);
            let tail = tail.trim_start();
            let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let unit_us = match unit {
                "us" => 1,
                "ms" => 1_000,
                "s" | "sec" => 1_000_000,
                "m" | "min" => 60_000_000,
                "h" => 3_600_000_000_u64,
                "d" => 86_400_000_000,
                "" => return Err(fail("the unit of a number is missing")),
                _ => return Err(fail("its unit is not one of us, ms, s, m, h, d")),
            };
            let part = decimal_times(number, unit_us)
                .ok_or_else(|| fail("its number can't be read or is too large"))?;
            total = Self(total.0.checked_add(part).ok_or_else(|| fail("it is too large"))?);
            rest = tail.trim_start();
        }
        Ok(total)
    }
}

/// The product of `number` (digits with at most one point) and `scale`, computed exactly and rounded down; `None`:
/// `number` is invalid or the product too large.
pub(crate) fn decimal_times(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 15 {
        return None;
    }
    let digits = |s: &str| if s.is_empty() { Some(0) } else { s.parse::<u64>().ok() };
    let whole = digits(whole)?.checked_mul(scale)?;
    let below = u128::from(digits(fraction)?) * u128::from(scale)
        / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_add(u64::try_from(below).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_spans_in_many_ways() {
        for (text, us) in [
            ("45m", 2_700_000_000),
            ("1h30m", 5_400_000_000),
            ("0.5s", 500_000),
            ("2 d", 172_800_000_000),
            ("10ms", 10_000),
            ("1min 5 s", 65_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Span(us)), "{text}");
        }
        for text in ["", "-5s", "5", "5 parsecs", "1.2.3s", "s", "99999999999999d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(us in 0_u64..1 << 50) {
            prop_assert_eq!(Span(us).to_string().parse(), Ok(Span(us)));
        }

        #[test]
        fn the_time_at_a_speed_is_exact(us in prop_oneof![0_u64..1 << 40, 0_u64..=u64::MAX], ppm in 0_u32..=4_000_000) {
            let whole = u128::from(us) * 1_000_000;
            let exact = whole.checked_div(u128::from(ppm)).map(|least| {
                least + u128::from(!whole.is_multiple_of(u128::from(ppm)))
            });
            let exact = exact.and_then(|us| u64::try_from(us).ok());
            prop_assert_eq!(Span(us).at_speed(Ppm::new(ppm)), exact.map(Span));
            prop_assert_eq!(Span(us).at_speed(Ppm::ONE), Some(Span(us)));
        }

        #[test]
        fn slower_work_never_takes_less(us in 0_u64..1 << 40, a in 1_u32..=1_000_000, b in 1_u32..=1_000_000) {
            let (slow, fast) = (a.min(b), a.max(b));
            prop_assert!(Span(us).at_speed(Ppm::new(slow)) >= Span(us).at_speed(Ppm::new(fast)));
        }
    }
}
