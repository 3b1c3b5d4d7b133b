//! Model of spot prices: a base price within a band, and spikes above it.

use dormouse_units::{Ppm, Price, RandomStream, Span, Time, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PriceTrace;

/// Model from which the spot prices of an instance type are drawn.
///
/// Outside spikes, each price from `low` to `high` in steps of `step` is equally likely, and a new price is drawn after
/// exponentially distributed times. The time from the end of a spike to the next one is exponential, too. A spike lasts for a
/// lognormal time and has one price: `high` plus a lognormal lift.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PriceModel {
    /// The lowest price, in dollars an hour.
    #[schemars(example = 0.304)]
    pub low: Price,
    /// The highest price outside spikes, in dollars an hour.
    #[schemars(example = 0.336)]
    pub high: Price,
    /// Distance between neighbouring prices outside spikes, counted from the lowest price.
    #[schemars(example = 0.002)]
    pub step: Price,
    /// Mean time between draws outside spikes; a draw may repeat the price.
    #[schemars(extend("least" = "1s"), example = "2h")]
    pub every: Span,
    /// Mean time from the end of a spike to the next one.
    #[serde(default)]
    #[schemars(example = "5d")]
    pub spike_every: Span,
    /// Mean duration of a spike; zero: there are no spikes.
    #[serde(default)]
    #[schemars(example = "2h")]
    pub spike_lasts: Span,
    /// Mean amount by which the price of a spike exceeds `high`.
    #[serde(default)]
    #[schemars(example = 0.2)]
    pub spike_lift: Price,
    /// Coefficient of variation of the spikes' durations and of their lifts above `high`.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 4.0), example = 0.8)]
    pub spike_spread: Ppm,
}

/// Spot prices of an instance type that are drawn from a model for each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GeneratedPrices {
    /// The model from which the prices are drawn.
    pub model: PriceModel,
    /// Length of time for which prices are drawn; the last price holds afterwards.
    #[serde(default = "a_month")]
    #[schemars(extend("least" = "1s"))]
    pub lasts: Span,
    /// Seed of the prices, with which all runs have the same prices; if not given, the run's own seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

const fn a_month() -> Span {
    Span::from_secs(30 * 86_400)
}

impl GeneratedPrices {
    /// Prices of a type in a run with this seed.
    #[must_use]
    pub fn draw_trace(&self, kind: &TypeName, seed: u64) -> PriceTrace {
        let mut chance =
            RandomStream::named_stream(self.seed.unwrap_or(seed), "prices", kind.as_str());
        self.model.draw_trace(self.lasts, &mut chance)
    }
}

/// Reasons why a price model is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadModel {
    /// The band of prices is empty.
    #[error("'high' is below 'low'; give at least as much")]
    Band,
    /// The step between prices is zero.
    #[error("'step' is 0; give the distance between two prices, such as 0.001")]
    Step,
    /// The price would change more often than a log can keep.
    #[error(
        "there would be too many price changes for a log; make 'every' or 'spike-every' longer, or \
         'lasts' shorter"
    )]
    TooMany,
    /// Spikes follow each other without a break.
    #[error("spikes that last need 'spike-every'; give the mean time between them, such as \"5d\"")]
    Spikes,
}

const DAY: Span = Span::from_secs(86_400);

/// Greatest expected number of price changes of a model.
const MOST_CHANGES: f64 = 50_000.0;

impl PriceModel {
    /// Checks that the model can produce prices for a time of this length.
    ///
    /// # Errors
    ///
    /// The reason why the model can't.
    pub fn check_model(&self, length: Span) -> Result<(), BadModel> {
        let changes = |every: Span| length.as_secs_f64() / every.as_secs_f64().max(1e-6);
        match self {
            _ if self.high < self.low => Err(BadModel::Band),
            _ if self.step == Price::default() => Err(BadModel::Step),
            _ if self.spike_lasts > Span::ZERO && self.spike_every == Span::ZERO => {
                Err(BadModel::Spikes)
            }
            _ if changes(self.every) > MOST_CHANGES => Err(BadModel::TooMany),
            _ if self.spike_lasts > Span::ZERO && changes(self.spike_every) > MOST_CHANGES => {
                Err(BadModel::TooMany)
            }
            _ => Ok(()),
        }
    }

    /// Number of possible prices of the model outside spikes.
    fn level_count(&self) -> u64 {
        let band = self.high.as_nanos_per_hour().saturating_sub(self.low.as_nanos_per_hour());
        band / self.step.as_nanos_per_hour().max(1) + 1
    }

    fn price_level(&self, n: u64) -> Price {
        let step = self.step.as_nanos_per_hour().max(1);
        Price::from_nanos_per_hour(self.low.as_nanos_per_hour() + n * step)
    }

    /// Fraction of the time in spikes; spikes and the times between them alternate.
    #[must_use]
    pub fn spike_share(&self) -> f64 {
        let (between, lasts) = (self.spike_every.as_secs_f64(), self.spike_lasts.as_secs_f64());
        if lasts > 0.0 { lasts / (between + lasts) } else { 0.0 }
    }

    /// Mean number of price changes per day: both ends of each spike, and draws between spikes that
    /// change the price.
    #[must_use]
    pub fn changes_a_day(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "prices of a band are few")]
        let others = 1.0 - 1.0 / self.level_count() as f64;
        let draws = |of: Span| others * of.as_secs_f64() / self.every.as_secs_f64();
        if self.spike_lasts == Span::ZERO {
            return draws(DAY);
        }
        let cycle = self.spike_every + self.spike_lasts;
        DAY.as_secs_f64() / cycle.as_secs_f64() * (2.0 + draws(self.spike_every))
    }

    /// The mean price over time, dollars an hour.
    #[must_use]
    pub fn mean_usd(&self) -> f64 {
        let usd = |nanos: u64| Price::from_nanos_per_hour(nanos).as_usd_per_hour();
        let top = self.price_level(self.level_count() - 1);
        let base = usd(self.low.as_nanos_per_hour() + top.as_nanos_per_hour()) / 2.0;
        let spike = usd(self.high.as_nanos_per_hour() + self.spike_lift.as_nanos_per_hour());
        let share = self.spike_share();
        (1.0 - share) * base + share * spike
    }

    /// Fraction of the time in which the price exceeds `price`, which must not exceed `high`.
    #[must_use]
    pub fn share_above(&self, price: Price) -> f64 {
        let above = (0..self.level_count()).filter(|n| self.price_level(*n) > price).count();
        #[expect(clippy::cast_precision_loss, reason = "prices of a band are few")]
        let base = above as f64 / self.level_count() as f64;
        let share = self.spike_share();
        (1.0 - share) * base + share
    }

    /// Draws prices for a time of this length; the last one holds afterwards.
    #[must_use]
    pub fn draw_trace(&self, length: Span, chance: &mut RandomStream) -> PriceTrace {
        let spread = self.spike_spread.as_f64();
        let (end, mut now, mut steps) = (Time::ZERO + length, Time::ZERO, Vec::new());
        let spikes = self.spike_lasts > Span::ZERO;
        while now < end {
            let spike = match spikes {
                true => (now + chance.draw_exponential(self.spike_every)).min(end),
                false => end,
            };
            while now < spike {
                steps.push((now, self.draw_price(chance)));
                now += chance.draw_exponential(self.every);
            }
            if spike == end {
                break;
            }
            let lift = self.spike_lift.as_usd_per_hour() * chance.draw_lognormal(spread);
            let lift = Price::from_usd_per_hour(lift).unwrap_or(self.spike_lift);
            let nanos = self.high.as_nanos_per_hour() + lift.as_nanos_per_hour();
            // The draw that the spike cut off is not made.
            steps.push((spike, Price::from_nanos_per_hour(nanos)));
            let lasts = self.spike_lasts.as_secs_f64() * chance.draw_lognormal(spread);
            now = spike + Span::from_secs_f64(lasts).unwrap_or(self.spike_lasts);
        }
        PriceTrace::new(steps)
    }

    fn draw_price(&self, chance: &mut RandomStream) -> Price {
        let n = chance.draw_below(usize::try_from(self.level_count()).unwrap_or(usize::MAX));
        self.price_level(n as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PriceStatistics;

    #[test]
    fn what_is_drawn_has_the_statistics_that_are_stated() {
        let price = |text: &str| text.parse::<Price>().expect("it is one");
        let minutes = |n: u64| Span::from_secs(60 * n);
        let model = PriceModel {
            low: price("0.30"),
            high: price("0.34"),
            step: price("0.002"),
            every: minutes(90),
            spike_every: minutes(3_000),
            spike_lasts: minutes(120),
            spike_lift: price("0.2"),
            spike_spread: Ppm::new(500_000),
        };
        let (length, seeds) = (minutes(60 * 24 * 365), 60_u64);
        let stated = [
            model.mean_usd(),
            model.share_above(price("0.32")),
            model.share_above(price("0.33")),
            model.spike_share(),
            model.changes_a_day(),
        ];
        assert!((model.share_above(model.high) - stated[3]).abs() < 1e-12);
        let mut sums = [0.0; 5];
        for seed in 1..=seeds {
            let trace = model.draw_trace(length, &mut RandomStream::new(seed, "prices", 0));
            assert_eq!(trace, model.draw_trace(length, &mut RandomStream::new(seed, "prices", 0)));
            let of = PriceStatistics::measure_trace(&trace, Time::ZERO + length)
                .expect("there are prices");
            let above = |level| 1.0 - of.share_up_to(price(level));
            let changes = f64::from(u32::try_from(of.changes).expect("few")) / 365.0;
            let figures = [of.mean_usd, above("0.32"), above("0.33"), above("0.34"), changes];
            for (sum, figure) in sums.iter_mut().zip(figures) {
                *sum += figure;
            }
            assert!(of.price_quantile(0.0) == model.low && of.price_quantile(0.9) <= model.high);
        }
        for (sum, stated) in sums.into_iter().zip(stated) {
            let ours = sum / 60.0;
            assert!((ours / stated - 1.0).abs() < 0.02, "{ours} is stated as {stated}");
        }
    }

    #[test]
    fn without_spikes_the_price_stays_in_its_band() {
        let price = |text: &str| text.parse::<Price>().expect("it is one");
        let model = PriceModel {
            low: price("0.1"),
            high: price("0.1"),
            step: price("0.01"),
            every: Span::from_secs(60),
            spike_every: Span::ZERO,
            spike_lasts: Span::ZERO,
            spike_lift: price("1"),
            spike_spread: Ppm::ZERO,
        };
        let trace =
            model.draw_trace(Span::from_secs(3_600), &mut RandomStream::new(1, "prices", 0));
        assert_eq!(trace.steps(), [(Time::ZERO, price("0.1"))]);
        assert!(model.changes_a_day().abs() < 1e-12, "each draw repeats the price");
    }
}
