//! Laws of the durations for which VMs are requested.

use dormouse_units::{Ppm, RandomStream, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sampling::exponential;

/// Greatest number of draws for one duration within its bounds. For a law with a valid
/// [`DurationLaw::probability_within`], the probability that more draws are needed is below 10^-400.
const MOST_DRAWS: u32 = 1_000_000;

/// Probability law of the time for which VMs are wanted, counted from when they are ready.
///
/// A draw below `least` or above `most` is repeated. So the mean of the drawn durations differs from `mean`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename = "law",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
#[schemars(rename = "Duration", tag = "law")]
pub enum DurationLaw {
    /// Every VM is wanted for the same time.
    Fixed {
        /// The time for which each VM is wanted.
        #[schemars(extend("least" = "1us"), example = "2h")]
        length: Span,
    },
    /// Durations are uniformly distributed between two bounds.
    Uniform {
        /// Lower bound of the durations.
        #[schemars(extend("least" = "1us"), example = "10m")]
        least: Span,
        /// Upper bound of the durations.
        #[schemars(extend("least" = "1us"), example = "300m")]
        most: Span,
    },
    /// Durations are exponentially distributed.
    Exponential {
        /// Mean of the distribution, before the bounds `least` and `most` are applied.
        #[schemars(extend("least" = "1us"), example = "2h")]
        mean: Span,
        /// Lower bound: a shorter duration is drawn again; if it is not given, there is no lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        least: Option<Span>,
        /// Upper bound: a longer duration is drawn again; if it is not given, there is no upper bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("least" = "1us"))]
        most: Option<Span>,
    },
    /// Durations are log-normally distributed.
    Lognormal {
        /// Mean of the distribution, before the bounds `least` and `most` are applied.
        #[schemars(extend("least" = "1us"), example = "2h")]
        mean: Span,
        /// Coefficient of variation (standard deviation over mean) of the distribution, before the bounds are
        /// applied.
        #[schemars(range(min = 0.0, max = 100.0), example = 1.5)]
        variation: Ppm,
        /// Lower bound: a shorter duration is drawn again; if it is not given, there is no lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        least: Option<Span>,
        /// Upper bound: a longer duration is drawn again; if it is not given, there is no upper bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("least" = "1us"))]
        most: Option<Span>,
    },
}

impl DurationLaw {
    /// The shortest and the longest duration that the law allows.
    #[must_use]
    pub fn bounds(&self) -> (Span, Span) {
        let instant = Span::from_micros(1);
        match self {
            Self::Fixed { length } => (*length, *length),
            Self::Uniform { least, most } => (*least, *most),
            Self::Exponential { least, most, .. } | Self::Lognormal { least, most, .. } => {
                (least.unwrap_or(instant).max(instant), most.unwrap_or(Span::from_micros(u64::MAX)))
            }
        }
    }

    /// The probability that a draw from the law without its bounds lies within the bounds.
    #[must_use]
    pub fn probability_within(&self) -> f64 {
        let (least, most) = self.bounds();
        let (least, most) = (least.as_secs_f64(), most.as_secs_f64());
        match self {
            Self::Fixed { .. } | Self::Uniform { .. } => 1.0,
            Self::Exponential { mean, .. } => {
                let above = |x: f64| libm::exp(-x / mean.as_secs_f64());
                above(least) - above(most)
            }
            Self::Lognormal { mean, variation, .. } => {
                let variation = variation.as_f64();
                let variance = libm::log1p(variation * variation);
                let mean = mean.as_secs_f64();
                if variance == 0.0 {
                    return f64::from(u8::from((least..=most).contains(&mean)));
                }
                // Both tails by the complement, which is exact where it is small.
                let score =
                    |x: f64| (libm::log(x / mean) + variance / 2.0) / libm::sqrt(2.0 * variance);
                (libm::erfc(score(least)) - libm::erfc(score(most))) / 2.0
            }
        }
    }

    /// Draws a duration from `stream`.
    pub(super) fn draw(&self, stream: &mut RandomStream) -> Span {
        let (least, most) = self.bounds();
        let mut drawn = least;
        for _ in 0..MOST_DRAWS {
            let of_law = match self {
                Self::Fixed { length } => Some(*length),
                Self::Uniform { .. } => {
                    let width = most.as_micros().saturating_sub(least.as_micros());
                    Some(least + Span::from_micros(up_to(stream, width)))
                }
                Self::Exponential { mean, .. } => {
                    Span::from_secs_f64(exponential(mean.as_secs_f64(), stream))
                }
                Self::Lognormal { mean, variation, .. } => {
                    let factor = stream.draw_lognormal(variation.as_f64());
                    Span::from_secs_f64(mean.as_secs_f64() * factor)
                }
            };
            // A duration longer than any time that is counted is drawn again, as any other that is
            // too long.
            let Some(of_law) = of_law else { continue };
            drawn = of_law;
            if (least..=most).contains(&drawn) {
                return drawn;
            }
        }
        drawn.clamp(least, most)
    }
}

/// A uniformly drawn whole number from 0 to `most`.
fn up_to(stream: &mut RandomStream, most: u64) -> u64 {
    let count = u128::from(most) + 1;
    u64::try_from((u128::from(stream.next_bits()) * count) >> 64).unwrap_or(most)
}
