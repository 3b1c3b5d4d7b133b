//! Speed of emulated time, and all conversions between emulated and real time.
//!
//! There are two clocks with two resolutions: emulated time is counted in microseconds, real time in nanoseconds. Real
//! time is converted to emulated time rounded down, which is what a clock shows; emulated time is converted to the
//! shortest real time after which such a clock shows it. Up to a speed-up of 1,000 a conversion to real time and back
//! therefore loses nothing, on any host.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Ppm, Span};

/// How much faster emulated time passes than real time. In files it is a number: emulated seconds per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speedup {
    /// Emulated microseconds in a second of real time; never zero.
    emulated_us_per_second: u64,
}

impl Speedup {
    /// The speed-up of a run whose clock is as fast as real time.
    pub const ONE: Self = Self::times_real(1);

    /// The speed-up by `factor`; the factor zero counts as one.
    #[must_use]
    pub const fn times_real(factor: u32) -> Self {
        let factor = if factor == 0 { 1 } else { factor as u64 };
        Self { emulated_us_per_second: factor * 1_000_000 }
    }

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

    /// The speed-up with this number of emulated microseconds in a second of real time; `None` if the number is zero.
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

    /// The speed-up of a run whose vCPUs have this share of a core, if the speed-up with whole cores is `self`; `None`:
    /// the share or the result is zero.
    #[must_use]
    pub fn at_share(self, share: Ppm) -> Option<Self> {
        let us = u128::from(self.emulated_us_per_second()) * u128::from(share.get()) / 1_000_000;
        Self::from_emulated_us_per_second(u64::try_from(us).ok()?)
    }

    /// The share of a core that a vCPU needs for a run at this speed-up, if the run has the speed-up `pace` with whole
    /// cores; at most a whole core.
    #[must_use]
    pub fn share_of_core(self, pace: Self) -> Ppm {
        let [is, whole] = [self, pace].map(|it| u128::from(it.emulated_us_per_second()));
        let ppm = (is * 1_000_000 / whole).min(1_000_000);
        Ppm::new(u32::try_from(ppm).unwrap_or(1_000_000))
    }

    /// The emulated time that passes in `real`, rounded down to microseconds, saturating.
    #[must_use]
    pub fn to_emulated(self, real: Duration) -> Span {
        let us =
            real.as_nanos().saturating_mul(u128::from(self.emulated_us_per_second)) / 1_000_000_000;
        Span::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// The shortest real time in which `emulated` passes: rounded up to nanoseconds, saturating.
    #[must_use]
    pub fn to_real(self, emulated: Span) -> Duration {
        let ns = (u128::from(emulated.as_micros()) * 1_000_000_000)
            .div_ceil(u128::from(self.emulated_us_per_second));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// The CPU time that `share` of a core has to give in `emulated` time, rounded down to microseconds,
    /// saturating.
    #[must_use]
    pub fn cpu_time(self, emulated: Span, share: Ppm) -> Duration {
        let us = u128::from(emulated.as_micros()) * u128::from(share.get())
            / u128::from(self.emulated_us_per_second);
        Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// The share of a core that gives `cpu_time` of CPU time, counted in microseconds, in the emulated time `emulated`:
    /// rounded down, saturating. An emulated time of zero counts as a microsecond.
    #[must_use]
    pub fn core_share(self, cpu_time: Duration, emulated: Span) -> Ppm {
        let ppm = cpu_time.as_micros().saturating_mul(u128::from(self.emulated_us_per_second))
            / u128::from(emulated.as_micros().max(1));
        Ppm::new(u32::try_from(ppm).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Speedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

impl Serialize for Speedup {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.as_f64().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Speedup {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let factor = f64::deserialize(from)?;
        let why = "a speed-up is between 0.001 and 1000000";
        Self::from_f64(factor).ok_or_else(|| de::Error::custom(why))
    }
}

impl JsonSchema for Speedup {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Speedup".into()
    }

    fn json_schema(of: &mut SchemaGenerator) -> Schema {
        f64::json_schema(of)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_factor_is_sensible_or_none() {
        for no in [0.0, -1.0, 0.000_9, 1_000_000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Speedup::from_f64(no), None, "{no}");
        }
        assert_eq!(Speedup::from_f64(30.0), Some(Speedup::times_real(30)));
        assert_eq!(Speedup::times_real(0), Speedup::ONE);
        assert_eq!(Speedup::from_emulated_us_per_second(0), None);
    }

    #[test]
    fn files_have_a_factor() {
        for (factor, text) in [(30.0, "30.0"), (0.001, "0.001"), (29.97, "29.97")] {
            let speedup = Speedup::from_f64(factor).unwrap();
            assert_eq!(serde_json::to_string(&speedup).unwrap(), text);
            assert_eq!(serde_json::from_str::<Speedup>(text).unwrap(), speedup);
        }
        assert_eq!(serde_json::from_str::<Speedup>("7").unwrap(), Speedup::times_real(7));
        let no = serde_json::from_str::<Speedup>("0").unwrap_err().to_string();
        assert!(no.contains("between 0.001 and 1000000"), "{no}");
        assert_eq!(Speedup::times_real(30).to_string(), "30");
    }

    #[test]
    fn time_is_rounded_to_when_a_clock_shows_it() {
        let thirty = Speedup::times_real(30);
        // A microsecond at speed-up 30 is 33.3 ns of real time.
        assert_eq!(thirty.to_real(Span::from_micros(1)), Duration::from_nanos(34));
        assert_eq!(thirty.to_emulated(Duration::from_nanos(33)), Span::ZERO);
        assert_eq!(thirty.to_emulated(Duration::from_nanos(34)), Span::from_micros(1));
        assert_eq!(thirty.to_real(Span::from_secs(2_700)), Duration::from_secs(90));
        let never = Span::from_micros(u64::MAX);
        assert_eq!(thirty.to_real(never), Duration::from_nanos(u64::MAX));
        assert_eq!(Speedup::times_real(1_000_000).to_emulated(Duration::MAX), never);
    }

    #[test]
    fn a_share_of_a_core_gives_its_part_of_the_real_time() {
        let (thirty, share) = (Speedup::times_real(30), Ppm::new(112_500));
        assert_eq!(thirty.cpu_time(Span::from_secs(300), share), Duration::from_millis(1_125));
        assert_eq!(thirty.core_share(Duration::from_millis(1_125), Span::from_secs(300)), share);
        // 0.9999 µs, and 9.999 ppm.
        assert_eq!(thirty.cpu_time(Span::from_micros(29_997), Ppm::new(1_000)), Duration::ZERO);
        assert_eq!(
            Speedup::ONE.core_share(Duration::from_micros(9_999), Span::from_secs(1_000)),
            Ppm::new(9)
        );
        assert_eq!(thirty.core_share(Duration::MAX, Span::ZERO), Ppm::new(u32::MAX));
    }

    proptest! {
        #[test]
        fn there_and_back_nothing_is_lost(us_per_s in 1_000_u64..=1_000_000_000, us in 0_u64..1 << 50) {
            let (speedup, span) = (Speedup { emulated_us_per_second: us_per_s }, Span::from_micros(us));
            // Real time that does not fit into nanoseconds saturates.
            prop_assume!(u128::from(us) * 1_000_000_000 / u128::from(us_per_s) < u128::from(u64::MAX));
            prop_assert_eq!(speedup.to_emulated(speedup.to_real(span)), span);
        }

        #[test]
        fn an_alarm_for_a_time_never_rings_before_its_clock_shows_it(
            us_per_s in 1_000_u64..=1_000_000_000_000,
            us in 0_u64..1 << 50,
        ) {
            let (speedup, span) = (Speedup { emulated_us_per_second: us_per_s }, Span::from_micros(us));
            prop_assume!(u128::from(us) * 1_000_000_000 / u128::from(us_per_s) < u128::from(u64::MAX));
            let at = speedup.to_real(span);
            prop_assert!(speedup.to_emulated(at) >= span);
            let before = at.saturating_sub(Duration::from_nanos(1));
            prop_assert!(at == Duration::ZERO || speedup.to_emulated(before) < span);
        }

        #[test]
        fn what_a_clock_showed_it_showed_by_then(us_per_s in 1_000_u64..=1_000_000_000_000, ns in 0_u64..1 << 60) {
            let (speedup, real) = (Speedup { emulated_us_per_second: us_per_s }, Duration::from_nanos(ns));
            prop_assert!(speedup.to_real(speedup.to_emulated(real)) <= real);
        }
    }
}
