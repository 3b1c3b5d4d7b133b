//! The largest and the smallest of several means.

use crate::{Estimate, Series};

/// The extreme to select among several means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The largest of the means is selected.
    Largest,
    /// The smallest of the means is selected.
    Smallest,
}

impl Extreme {
    fn pick_extreme(self, values: impl Iterator<Item = f64>) -> Option<f64> {
        values.reduce(match self {
            Self::Largest => f64::max,
            Self::Smallest => f64::min,
        })
    }
}

/// Returns the largest or smallest mean of several series, with an interval that covers it whichever series it
/// belongs to. The intervals of k series have confidence 1 − .05 / k, so that all cover their means at once in 95 %
/// of cases (Bonferroni). The largest mean is then between the largest lower end and the largest upper end. `None` if
/// a series has no sample; without an interval if a series has none. If the samples are paired resamples of one
/// record, the result is estimated from the extreme of each resample.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a count of series")]
pub fn extreme(all: &[Series], which: Extreme) -> Option<Estimate> {
    if all.iter().any(|series| series.whole.is_some()) {
        return Series::statistic_across(all, |each| {
            which.pick_extreme(each.iter().copied()).unwrap_or(f64::NAN)
        })?
        .estimate();
    }
    let confidence = 1.0 - 0.05 / all.len().max(1) as f64;
    let each = all.iter().map(|series| {
        let samples: Vec<f64> = series.each.iter().flatten().copied().collect();
        Estimate::with_confidence(&samples, confidence)
    });
    let each: Vec<Estimate> = each.collect::<Option<_>>()?;
    let is_saturated = all.iter().any(|series| series.is_saturated);
    let ends: Option<Vec<(f64, f64)>> = each.iter().map(|estimate| estimate.ci95).collect();
    let ci95 = ends.filter(|_| !is_saturated).and_then(|ends| {
        let low = which.pick_extreme(ends.iter().map(|(low, _)| *low))?;
        Some((low, which.pick_extreme(ends.iter().map(|(_, high)| *high))?))
    });
    let means = || each.iter().map(|estimate| estimate.mean);
    let mean = which.pick_extreme(means())?;
    let range = (means().fold(mean, f64::min), means().fold(mean, f64::max));
    let n = each.iter().map(|estimate| estimate.n).min()?;
    Some(Estimate { mean, ci95, range, n, is_saturated })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(each: &[f64]) -> Series {
        Series::of_runs(each.iter().copied().map(Some).collect())
    }

    #[test]
    fn the_interval_is_not_that_of_the_series_that_happens_to_be_ahead() {
        // The first is barely ahead and far better known: the largest mean may be the second's.
        let all = [runs(&[10.0, 10.2, 10.1, 10.1]), runs(&[2.0, 18.0, 6.0, 14.0])];
        let ours = extreme(&all, Extreme::Largest).expect("there are samples");
        let (low, high) = ours.ci95.expect("four runs");
        assert!((ours.mean - 10.1).abs() < 1e-9, "{ours:?}");
        assert!((9.8..10.1).contains(&low) && high > 18.0, "{ours:?}");
        let least = extreme(&all, Extreme::Smallest).expect("there are samples");
        let (low, high) = least.ci95.expect("four runs");
        assert!((least.mean - 10.0).abs() < 1e-9 && low < 2.0 && (10.1..10.4).contains(&high));
    }

    #[test]
    fn of_resamples_it_is_the_extreme_of_each() {
        let resamples = |whole: f64, each: &[f64]| Series { whole: Some(whole), ..runs(each) };
        let up: Vec<f64> = (0..100).map(f64::from).collect();
        let down: Vec<f64> = up.iter().rev().copied().collect();
        let all = [resamples(40.0, &up), resamples(45.0, &down)];
        let ours = extreme(&all, Extreme::Largest).expect("there are resamples");
        let (low, high) = ours.ci95.expect("a hundred");
        // The larger of n and 99 − n: from 50 to 99.
        assert!((ours.mean - 45.0).abs() < 1e-12 && low > 50.0 && high < 99.0, "{ours:?}");
    }

    #[test]
    fn one_series_has_its_own_interval_and_one_run_none() {
        let one = runs(&[1.0, 2.0, 3.0]);
        let alone = extreme(std::slice::from_ref(&one), Extreme::Largest);
        let (ours, own) = (alone.and_then(|e| e.ci95), one.estimate().and_then(|e| e.ci95));
        let ((a, b), (c, d)) = (ours.expect("three runs"), own.expect("three runs"));
        assert!((a - c).abs() < 1e-12 && (b - d).abs() < 1e-12);
        let single = extreme(&[runs(&[1.0]), one], Extreme::Largest).expect("there are samples");
        assert_eq!(single.ci95, None);
        assert_eq!(extreme(&[], Extreme::Largest), None);
    }
}
