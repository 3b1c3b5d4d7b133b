//! Means of amounts, such as times, costs and counts, whose intervals never go below zero.

use dormouse_units::RandomStream;
use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::estimate::{Estimate, student975};
use crate::resamples::interpolated_quantile;

/// Least number of samples for a bootstrap. With fewer, an interval that Student's t would extend
/// below zero is left out.
pub const FEWEST: usize = 5;

/// Number of resamples of the bootstrap.
const RESAMPLES: usize = 4_000;

impl Estimate {
    /// Mean of samples that are never negative, with Student's interval unless that interval would go below zero. In
    /// that case the samples are skewed, and the interval is Efron's bootstrap percentile interval (widened for few
    /// samples after Hesterberg, The American Statistician 69, 2015), or is left out for fewer than [`FEWEST`] samples.
    /// `None` if there are no samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    pub fn of_amounts(samples: &[f64]) -> Option<Self> {
        let students = Self::from_samples(samples)?;
        let n = samples.len();
        let mean = |of: &[usize]| of.iter().map(|&n| samples[n]).sum::<f64>() / n as f64;
        Some(students.at_least(0.0, students.range.0, mean))
    }

    /// Relative change from the amounts `from` to the amounts `to`, which are paired samples: the mean difference
    /// divided by the mean of `from`. The interval is Student's of the differences, in the same unit, so that it leaves
    /// out 0 exactly if the paired test says that the means differ. It never goes below −1, a total loss: such an
    /// interval is replaced by that of a bootstrap, or left out for fewer than [`FEWEST`] pairs. `None` if there are no
    /// pairs or the mean of `from` is zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    pub fn of_change(from: &[f64], to: &[f64]) -> Option<Self> {
        let n = from.len().min(to.len());
        let base = from[..n].iter().sum::<f64>() / n as f64;
        if n == 0 || base == 0.0 {
            return None;
        }
        let differences: Vec<f64> =
            to.iter().zip(from).map(|(to, from)| (to - from) / base).collect();
        let sum = |all: &[f64], of: &[usize]| of.iter().map(|&n| all[n]).sum::<f64>();
        let of_indices = |of: &[usize]| sum(to, of) / sum(from, of) - 1.0;
        let least = from.iter().chain(to).copied().fold(f64::INFINITY, f64::min);
        let is_amount = if least < 0.0 { f64::NEG_INFINITY } else { -1.0 };
        Some(Self::from_samples(&differences)?.at_least(-1.0, is_amount, of_indices))
    }

    /// True if there are several samples but too few for an interval of a non-negative quantity.
    #[must_use]
    pub const fn is_of_too_few(&self) -> bool {
        self.ci95.is_none() && !self.is_saturated && self.n > 1 && self.n < FEWEST
    }

    /// Returns the estimate without an interval that goes below `bound`: such an interval is replaced by that of a
    /// bootstrap of the statistic `of`, if no sample (`least` is the smallest) is below `bound`.
    fn at_least(self, bound: f64, least: f64, of: impl Fn(&[usize]) -> f64) -> Self {
        if least < bound || self.ci95.is_none_or(|(low, _)| low >= bound) {
            return self;
        }
        let ci95 = (self.n >= FEWEST).then(|| middle_of_resamples(self.n, of)).flatten();
        Self { ci95, ..self }
    }
}

/// Middle 95 % of a statistic over resamples of `n` samples; the statistic gets the resample as
/// indices. The result is reproducible on every machine. `None` if the statistic is undefined for
/// too many resamples.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
pub(crate) fn middle_of_resamples(
    n: usize,
    statistic: impl Fn(&[usize]) -> f64,
) -> Option<(f64, f64)> {
    let mut chance = RandomStream::new(1, "resamples of amounts", n as u64);
    let mut places = vec![0; n];
    let mut all = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        places.fill_with(|| chance.draw_below(n));
        all.extend(Some(statistic(&places)).filter(|x| x.is_finite()));
    }
    if all.len() * 20 < RESAMPLES * 19 {
        return None;
    }
    all.sort_by(f64::total_cmp);
    let wide = student975(n - 1) * (n as f64 / (n - 1) as f64).sqrt();
    let part = Normal::standard().cdf(-wide);
    Some((interpolated_quantile(&all, part), interpolated_quantile(&all, 1.0 - part)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_is_above_zero_is_students() {
        let samples = [838.0, 846.0, 830.0];
        assert_eq!(Estimate::of_amounts(&samples), Estimate::from_samples(&samples));
        let none = [0.0; 3];
        assert_eq!(Estimate::of_amounts(&none).unwrap().ci95, Some((0.0, 0.0)));
    }

    /// Samples of 1,542 s and 1,820 s from two seeds: Student's interval is −85 to 3,447 s.
    #[test]
    fn of_few_samples_there_is_no_interval_below_zero() {
        let samples = [1_542.0, 1_820.0];
        assert!(Estimate::from_samples(&samples).unwrap().ci95.unwrap().0 < 0.0);
        let of = Estimate::of_amounts(&samples).unwrap();
        assert!(of.ci95.is_none() && of.is_of_too_few(), "{of:?}");
        assert!((of.mean - 1_681.0).abs() < 1e-9);
        assert!(!Estimate::of_amounts(&[7.0]).unwrap().is_of_too_few());
    }

    /// Work that was lost under one seed of ten. The mean of a resample is a binomial count times 3: 0 with probability
    /// 0.9^10, so that the interval begins at 0, and 9 or more with probability 0.07.
    #[test]
    fn of_skewed_samples_the_interval_lies_between_the_least_and_the_most() {
        let samples = [0.0, 0.0, 0.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let students = Estimate::from_samples(&samples).unwrap().ci95.unwrap();
        let of = Estimate::of_amounts(&samples).unwrap();
        let (low, high) = of.ci95.unwrap();
        assert!(students.0 < 0.0 && low.abs() < 1e-12 && (9.0..=15.0).contains(&high), "{of:?}");
        assert_eq!(
            of,
            Estimate::of_amounts(&samples).unwrap(),
            "the same samples, the same interval"
        );
    }

    /// Exponential samples of mean 1: of the intervals for 400 sets of eight samples, about 95 in 100 cover the mean.
    /// Bootstraps of so few samples cover somewhat less (Hesterberg's figure 6), and so do Student's intervals.
    #[test]
    fn intervals_of_skewed_amounts_cover_their_mean_about_as_often_as_they_say() {
        let mut chance = RandomStream::new(3, "skewed", 0);
        let mut covered = 0;
        for _ in 0..400 {
            let mut draw = || -> f64 {
                let log = -(1.0 - chance.draw_unit()).ln();
                log * log / 2.0
            };
            let samples: Vec<f64> = (0..8).map(|_| draw()).collect();
            let of = Estimate::of_amounts(&samples).unwrap();
            assert!(of.ci95.unwrap().0 >= 0.0, "{of:?}");
            covered += u32::from(of.covers(1.0));
        }
        assert!((280..=396).contains(&covered), "{covered} of 400");
    }

    /// Makespans of five seeds against one that is the same under each: the differences alone decide (2.776 standard
    /// errors, by hand), though the ratio of the means would vary more.
    #[test]
    fn a_change_is_clear_exactly_if_its_paired_differences_are() {
        let from = [863.0, 2026.0, 2155.0, 2375.0, 1313.0];
        let change = Estimate::of_change(&from, &[2580.0; 5]).unwrap();
        let (low, high) = change.ci95.unwrap();
        assert!((change.mean - 0.4773).abs() < 1e-4, "{change:?}");
        assert!((low - 0.0265).abs() < 1e-3 && (high - 0.928).abs() < 1e-3, "{change:?}");
        let differences = from.map(|x| 2580.0 - x);
        assert!(!Estimate::from_samples(&differences).unwrap().covers(0.0) && !change.covers(0.0));
    }

    #[test]
    fn a_change_takes_away_no_more_than_all() {
        let from = [10.0, 10.0, 10.0, 10.0, 10.0, 10.0];
        let change = Estimate::of_change(&from, &[0.0, 0.0, 0.0, 0.0, 0.0, 9.0]).unwrap();
        let (low, high) = change.ci95.unwrap();
        assert!((change.mean + 0.85).abs() < 1e-12 && low >= -1.0 && high < 0.0, "{change:?}");
        let few = Estimate::of_change(&from[..2], &[0.0, 9.0]).unwrap();
        assert!(few.is_of_too_few(), "{few:?}");
        assert_eq!(Estimate::of_change(&[0.0, 0.0], &[1.0, 2.0]), None);
        let half = Estimate::of_change(&from, &[5.0; 6]).unwrap();
        assert!(half.ci95.is_some_and(|(low, high)| (high - low).abs() < 1e-12), "{half:?}");
    }
}
