//! How fast emulated time passes.

use std::time::Duration;

use crate::Span;

/// How much faster emulated time passes than real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speedup {
    emulated_us_per_second: u64,
}

impl Speedup {
    /// The nearest speed-up to `factor`; `None` unless it is between 0.001 and 1,000,000.
    #[must_use]
    pub fn from_f64(factor: f64) -> Option<Self> {
        if !(0.001..=1e6).contains(&factor) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked"
        )]
        Self::from_emulated_us_per_second((factor * 1e6).round() as u64)
    }

    /// Emulated microseconds in a second of real time; `None` if zero.
    #[must_use]
    pub fn from_emulated_us_per_second(us: u64) -> Option<Self> {
        (us > 0).then_some(Self { emulated_us_per_second: us })
    }

    /// Emulated microseconds in a second of real time.
    #[must_use]
    pub const fn emulated_us_per_second(self) -> u64 {
        self.emulated_us_per_second
    }

    /// The speed-up as a factor, for people only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_f64(self) -> f64 {
        self.emulated_us_per_second as f64 / 1e6
    }

    /// The emulated microseconds that pass in `real`, rounded down.
    #[must_use]
    pub fn emulated_us(self, real: Duration) -> u64 {
        let us = real.as_nanos() * u128::from(self.emulated_us_per_second) / 1_000_000_000;
        u64::try_from(us).unwrap_or(u64::MAX)
    }

    /// The emulated time that passes in `real`, rounded down.
    #[must_use]
    pub fn emulated(self, real: Duration) -> Span {
        Span::from_micros(self.emulated_us(real))
    }

    /// The real time in which `us` emulated microseconds pass, rounded up.
    #[must_use]
    pub fn real(self, us: u64) -> Duration {
        let ns = (u128::from(us) * 1_000_000_000).div_ceil(u128::from(self.emulated_us_per_second));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
