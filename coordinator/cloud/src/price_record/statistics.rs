//! Statistics of a price record.

use dormouse_units::{Price, Span, Time};

use crate::PriceTrace;

/// Statistics of prices over an interval, each weighted by its duration.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceStatistics {
    /// Length of the interval that the statistics cover.
    pub length: Span,
    /// Number of times that the price changed in the interval.
    pub changes: usize,
    /// Mean price over time, dollars per hour.
    pub mean_usd: f64,
    /// Each distinct price, ascending, with its total duration.
    held: Vec<(Price, Span)>,
}

impl PriceStatistics {
    /// Statistics of the prices from the first one to `until`; `None`: the interval is empty.
    #[must_use]
    pub fn measure_trace(trace: &PriceTrace, until: Time) -> Option<Self> {
        let steps = trace.steps();
        let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([until]);
        let mut held: Vec<(Price, Span)> = steps
            .iter()
            .zip(ends)
            .map(|((from, price), to)| (*price, to.min(until).since(*from)))
            .filter(|(_, span)| *span > Span::ZERO)
            .collect();
        let changes = held.len().saturating_sub(1);
        held.sort_unstable();
        held.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        let length: Span = held.iter().map(|(_, span)| *span).sum();
        let sum: f64 = held.iter().map(|(price, span)| price.for_span(*span).as_usd()).sum();
        let hours = length.as_secs_f64() / 3_600.0;
        (hours > 0.0).then(|| Self { length, changes, mean_usd: sum / hours, held })
    }

    /// Mean number of price changes per day.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of changes")]
    pub fn changes_a_day(&self) -> f64 {
        self.changes as f64 * 86_400.0 / self.length.as_secs_f64()
    }

    /// Standard deviation of the prices over time, as a fraction of their mean.
    #[must_use]
    pub fn volatility(&self) -> f64 {
        let deviation = |(price, span): &(Price, Span)| {
            let usd = price.for_span(Span::from_secs(3_600)).as_usd();
            (usd - self.mean_usd).powi(2) * span.as_secs_f64()
        };
        let sum: f64 = self.held.iter().map(deviation).sum();
        let variance = sum / self.length.as_secs_f64();
        if self.mean_usd > 0.0 { variance.sqrt() / self.mean_usd } else { 0.0 }
    }

    /// The least price that was not exceeded for this fraction of the time, from 0 to 1.
    #[must_use]
    pub fn price_quantile(&self, part: f64) -> Price {
        let (wanted, mut sum) = (self.length.as_secs_f64() * part, 0.0);
        let reaches = |(_, span): &&(Price, Span)| {
            sum += span.as_secs_f64();
            sum >= wanted
        };
        let found = self.held.iter().find(reaches).or(self.held.last());
        found.map(|(price, _)| *price).unwrap_or_default()
    }

    /// Fraction of the time, from 0 to 1, in which the recorded price was at most `price`.
    #[must_use]
    pub fn share_up_to(&self, price: Price) -> f64 {
        let below = self.held.iter().take_while(|(held, _)| *held <= price);
        below.map(|(_, span)| span.as_secs_f64()).sum::<f64>() / self.length.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_price_weighs_as_long_as_it_held() {
        let (h, cents) = (|h: u64| Time::from_secs(3_600 * h), |n: u64| n * 10_000_000);
        let price = |n| Price::from_nanos_per_hour(cents(n));
        // 10 cents for 2 h, 30 for 1 h, 10 for 5 h.
        let trace = PriceTrace::new(vec![(h(0), price(10)), (h(2), price(30)), (h(3), price(10))]);
        let of = PriceStatistics::measure_trace(&trace, h(8)).expect("it has prices");
        assert_eq!((of.length, of.changes), (Span::from_secs(8 * 3_600), 2));
        assert!((of.mean_usd - 0.125).abs() < 1e-9, "{}", of.mean_usd);
        // An eighth of the time 17.5 cents above the mean, the rest 2.5 below.
        let deviation = (0.175_f64.powi(2) / 8.0 + 0.025_f64.powi(2) * 7.0 / 8.0).sqrt();
        assert!((of.volatility() - deviation / 0.125).abs() < 1e-9, "{}", of.volatility());
        assert_eq!(
            [0.0, 0.875, 0.88, 1.0].map(|p| of.price_quantile(p)),
            [10, 10, 30, 30].map(price)
        );
        assert_eq!([9, 10, 29, 30].map(|p| of.share_up_to(price(p))), [0.0, 0.875, 0.875, 1.0]);
        // What comes after the end does not count.
        let of = PriceStatistics::measure_trace(&trace, h(2)).expect("it has one");
        assert_eq!((of.changes, of.price_quantile(1.0)), (0, price(10)));
        assert_eq!(PriceStatistics::measure_trace(&trace, h(0)), None);
    }
}
