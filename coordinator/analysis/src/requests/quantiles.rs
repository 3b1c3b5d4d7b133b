//! Quantiles of times in bounded memory.

use std::collections::BTreeMap;

use dormouse_units::Span;

/// Greatest number of different times that [`TimeQuantiles`] counts; with more, the times are rounded.
const MAX_DISTINCT_TIMES: usize = 4_096;

/// Counts of times, for quantiles. With few distinct times the counts are exact; with too many, times are rounded up to
/// a multiple of the smallest sufficient power of two of microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeQuantiles {
    unit_us: u64,
    /// Number of occurrences of each time; times are in units of `unit_us` microseconds.
    counts: BTreeMap<u64, u64>,
    count: u64,
    sum_us: u128,
    largest: Span,
}

impl Default for TimeQuantiles {
    fn default() -> Self {
        let (counts, largest) = (BTreeMap::new(), Span::ZERO);
        Self { unit_us: 1, counts, count: 0, sum_us: 0, largest }
    }
}

impl TimeQuantiles {
    /// Adds a time to the counts.
    pub fn add(&mut self, time: Span) {
        self.count += 1;
        self.sum_us += u128::from(time.as_micros());
        self.largest = self.largest.max(time);
        *self.counts.entry(time.as_micros().div_ceil(self.unit_us)).or_default() += 1;
        while self.counts.len() > MAX_DISTINCT_TIMES {
            self.unit_us *= 2;
            for (time, n) in std::mem::take(&mut self.counts) {
                *self.counts.entry(time.div_ceil(2)).or_default() += n;
            }
        }
    }

    /// Number of counted times.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the counted times in seconds; `None` if nothing was counted.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us as f64 / self.count as f64 / 1e6)
    }

    /// The longest of the counted times; zero if nothing was counted.
    #[must_use]
    pub const fn largest(&self) -> Span {
        self.largest
    }

    /// Smallest time that at least `percent` % of the counted times do not exceed, rounded up as
    /// [`TimeQuantiles`] describes; `None` if nothing was counted.
    #[must_use]
    pub fn at(&self, percent: u64) -> Option<Span> {
        let wanted = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, n)| {
            seen += **n;
            seen >= wanted
        });
        found
            .map(|(time, _)| Span::from_micros(time.saturating_mul(self.unit_us)).min(self.largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_hostile_log_are_counted() {
        let mut all = TimeQuantiles::default();
        (0..2 * MAX_DISTINCT_TIMES as u64).for_each(|n| all.add(Span::from_micros(u64::MAX - n)));
        assert_eq!(all.at(100), Some(Span::from_micros(u64::MAX)));
    }

    fn quantiles_of(times: impl Iterator<Item = u64>) -> (TimeQuantiles, Vec<u64>) {
        let (mut quantiles, mut all) = (TimeQuantiles::default(), Vec::new());
        for time in times {
            quantiles.add(Span::from_micros(time));
            all.push(time);
        }
        all.sort_unstable();
        (quantiles, all)
    }

    #[test]
    fn few_different_times_are_exact() {
        let (quantiles, all) = quantiles_of((0..10_000).map(|n| n * n % 4_001));
        for percent in [0, 1, 50, 99, 100] {
            let place = (all.len() * percent).div_ceil(100).max(1) - 1;
            let exact = Span::from_micros(all[place]);
            assert_eq!(quantiles.at(percent as u64), Some(exact), "{percent} %");
        }
        assert_eq!(TimeQuantiles::default().at(50), None);
    }

    #[test]
    fn many_are_rounded_up_by_less_than_their_unit() {
        let (quantiles, all) = quantiles_of((0..100_000).map(|n| n * 7_919 % 1_000_003));
        let unit = quantiles.unit_us;
        assert!(unit > 1 && unit <= 512, "{unit}");
        for percent in [1, 50, 99] {
            let exact = all[(all.len() * percent).div_ceil(100) - 1];
            let found = quantiles.at(percent as u64).expect("there are some").as_micros();
            assert!(found >= exact && found - exact < unit, "{found} for {exact}");
        }
        let largest = all[all.len() - 1];
        assert_eq!(quantiles.at(100), Some(Span::from_micros(largest)));
        assert_eq!(quantiles.count(), 100_000);
    }
}
