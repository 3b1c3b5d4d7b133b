//! Samples of a figure, and comparisons of two figures sample by sample.

use crate::estimate::{Estimate, jackknife};
use crate::paired_means::pseudo_values;
use crate::resamples::of_resamples;

/// Samples of a figure: one from each independent run, one from each batch of a single run, or one from each
/// resample of what was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The samples; `None`: a run lacks the figure, such as the makespan of an unfinished run.
    pub each: Vec<Option<f64>>,
    /// True if the samples are batches of a single run.
    pub are_batches: bool,
    /// True if the samples come from a growing queue and so have no interval.
    pub is_saturated: bool,
    /// True if the samples are 1 or 0, for runs that have some property or not: the mean is a share
    /// of runs.
    pub is_share: bool,
    /// True if no sample can be negative, as with times, costs and counts: then the interval can't be negative, either.
    pub is_amount: bool,
    /// The figure of the whole record, if the samples are from its resamples (Efron's bootstrap);
    /// the spread of the samples, not their number, then gives the uncertainty. `None`: the samples
    /// are runs or batches.
    pub whole: Option<f64>,
}

impl Series {
    /// A series with one sample from each independent run.
    #[must_use]
    pub const fn of_runs(each: Vec<Option<f64>>) -> Self {
        let (are_batches, is_saturated, is_share, is_amount) = (false, false, false, false);
        Self { each, are_batches, is_saturated, is_share, is_amount, whole: None }
    }

    /// Estimate of the mean, with an interval if there is one; `None` without samples.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        let samples: Vec<f64> = self.each.iter().flatten().copied().collect();
        if let Some(whole) = self.whole {
            return Some(of_resamples(whole, &samples, self.each.len()));
        }
        let share = Some(&samples).filter(|_| self.is_share).and_then(|all| Estimate::share(all));
        let amount = || Estimate::of_amounts(&samples).filter(|_| self.is_amount);
        let estimate = share.or_else(amount).or_else(|| Estimate::from_samples(&samples))?;
        let ci95 = estimate.ci95.filter(|_| !self.is_saturated);
        Some(Estimate { ci95, is_saturated: self.is_saturated, ..estimate })
    }

    /// A statistic of two series sample by sample: of runs with the same seed, or of batches of the same jobs. For
    /// batches the result is the statistic of the batches' sums, with the jackknife's samples; for runs and resamples,
    /// the statistic of each pair. `None` if the series have different samples.
    #[must_use]
    pub fn compared(&self, other: &Self, statistic: impl Fn([f64; 2]) -> f64) -> Option<Self> {
        if !self.is_paired(other) {
            return None;
        }
        let each = if self.are_batches {
            let [of, than] =
                [self, other].map(|s| s.each.iter().flatten().copied().collect::<Vec<_>>());
            jackknife([&of, &than], &statistic).into_iter().map(Some).collect()
        } else {
            let pairs = self.each.iter().zip(&other.each);
            pairs.map(|(of, than)| Some(statistic([(*of)?, (*than)?]))).collect()
        };
        let is_saturated = self.is_saturated || other.is_saturated;
        let wholes = Self::whole_figures(&[self, other]);
        let whole = wholes.and_then(|all| Some(statistic([*all.first()?, *all.get(1)?])));
        Some(Self { each, is_saturated, is_share: false, is_amount: false, whole, ..*self })
    }

    /// A statistic of the means of two series of runs with the same seeds. The samples of the result are the
    /// jackknife's pseudo-values; a seed that lacks one of the two figures has none. Batches and resamples are compared
    /// as in [`Self::compared`]. `None` if the series have different samples.
    #[must_use]
    pub fn compared_by_means(
        &self,
        other: &Self,
        statistic: impl Fn([f64; 2]) -> f64,
    ) -> Option<Self> {
        if self.are_batches || self.whole.is_some() || other.whole.is_some() {
            return self.compared(other, statistic);
        }
        if !self.is_paired(other) {
            return None;
        }
        let pair = |(of, than): (&Option<f64>, &Option<f64>)| Some(vec![(*of)?, (*than)?]);
        let pairs: Vec<Option<Vec<f64>>> = self.each.iter().zip(&other.each).map(pair).collect();
        let there: Vec<Vec<f64>> = pairs.iter().flatten().cloned().collect();
        let mut values = pseudo_values(&there, |means| statistic([means[0], means[1]])).into_iter();
        let each = pairs.iter().map(|pair| pair.as_ref().and_then(|_| values.next())).collect();
        let is_saturated = self.is_saturated || other.is_saturated;
        Some(Self { each, is_saturated, is_share: false, is_amount: false, ..*self })
    }

    /// The mean of several series, sample by sample. Batches stay batches in the result, because comparisons of the
    /// same jobs at several loads are not independent. `None` if the series have different samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of series")]
    pub fn mean_of(all: &[Self]) -> Option<Self> {
        Self::statistic_across(all, |each| each.iter().sum::<f64>() / each.len() as f64)
    }

    /// A statistic of several series, sample by sample. `None` if the series have different
    /// samples.
    #[must_use]
    pub fn statistic_across(all: &[Self], statistic: impl Fn(&[f64]) -> f64) -> Option<Self> {
        let first = all.first().filter(|first| all.iter().all(|other| first.is_paired(other)))?;
        let at = |n: usize| {
            let samples: Option<Vec<f64>> = all.iter().map(|series| series.each[n]).collect();
            Some(statistic(&samples?))
        };
        let each = (0..first.each.len()).map(at).collect();
        let is_saturated = all.iter().any(|s| s.is_saturated);
        let whole = Self::whole_figures(&all.iter().collect::<Vec<_>>());
        let whole = whole.map(|wholes| statistic(&wholes));
        Some(Self { each, is_saturated, is_share: false, is_amount: false, whole, ..*first })
    }

    /// All samples of several independent series as one series.
    #[must_use]
    pub fn pooled(all: &[Self]) -> Self {
        let each = all.iter().flat_map(|series| series.each.clone()).collect();
        let is_saturated = all.iter().any(|s| s.is_saturated);
        let is_share = all.iter().all(|s| s.is_share);
        let is_amount = all.iter().all(|s| s.is_amount);
        Self { is_saturated, is_share, is_amount, ..Self::of_runs(each) }
    }

    /// Figures of the whole record for each series, if any of the series is of resamples; for a series that is not of
    /// resamples, such as a given law, the mean of its samples. `None` if no series is of resamples.
    fn whole_figures(all: &[&Self]) -> Option<Vec<f64>> {
        let any = all.iter().any(|series| series.whole.is_some());
        let whole = |series: &&Self| {
            let samples = || series.each.iter().flatten().copied().collect::<Vec<_>>();
            series.whole.or_else(|| Estimate::from_samples(&samples()).map(|of| of.mean))
        };
        if any { all.iter().map(whole).collect() } else { None }
    }

    /// The samples shifted so that the interval of their mean also covers the spread of the
    /// resamples: the variance of the mean becomes its own plus that of one resample. The mean is
    /// unchanged. Samples beyond the number of resamples are left out; without resamples there is
    /// no interval.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
    pub fn with_resamples(&self, resamples: &Self) -> Self {
        let there: Vec<f64> = resamples.each.iter().flatten().copied().collect();
        let n = there.len() as f64;
        let mean = there.iter().sum::<f64>() / n;
        let at = |n: usize| resamples.each.get(n).copied().flatten();
        let moved = |(n_th, x): (usize, &Option<f64>)| Some((*x)? + (at(n_th)? - mean) * n.sqrt());
        let each = self.each.iter().enumerate().map(moved).collect();
        Self { each, is_share: false, is_amount: false, ..*self }
    }

    const fn is_paired(&self, other: &Self) -> bool {
        self.each.len() == other.each.len() && self.are_batches == other.are_batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(each: &[f64]) -> Series {
        Series::of_runs(each.iter().copied().map(Some).collect())
    }

    fn batches(each: &[f64]) -> Series {
        Series { are_batches: true, ..runs(each) }
    }

    #[test]
    fn runs_are_compared_pair_by_pair_and_batches_by_their_sums() {
        let below = |[of, than]: [f64; 2]| 100.0 * (1.0 - of / than);
        let of_runs = runs(&[1.0, 3.0]).compared(&runs(&[2.0, 4.0]), below).expect("pairs");
        assert_eq!(of_runs, runs(&[50.0, 25.0]));
        let of_batches = batches(&[1.0, 3.0]).compared(&batches(&[2.0, 4.0]), below);
        // 2 · (1 − 4/6) minus what is left without each of them.
        let ours = of_batches.and_then(|b| b.estimate()).expect("pairs");
        assert!((ours.mean - (200.0 / 3.0 - 37.5)).abs() < 1e-9, "{ours:?}");
        assert_eq!(runs(&[1.0]).compared(&batches(&[2.0]), below), None);
        assert_eq!(runs(&[1.0]).compared(&runs(&[2.0, 3.0]), below), None);
    }

    #[test]
    fn means_are_compared_and_not_each_seeds_ratio() {
        let below = |[of, than]: [f64; 2]| 100.0 * (1.0 - of / than);
        let torn = Series::of_runs(vec![Some(1.0), None, Some(3.0)]);
        let ours = torn.compared_by_means(&runs(&[2.0, 9.0, 4.0]), below).expect("pairs");
        assert_eq!(ours.each[1], None);
        let mean = ours.estimate().map(|of| (of.mean, of.n));
        assert!(mean.is_some_and(|(x, n)| (x - 100.0 / 3.0).abs() < 1e-9 && n == 2), "{mean:?}");
    }

    #[test]
    fn a_run_without_the_figure_has_no_pair() {
        let torn = Series::of_runs(vec![Some(4.0), None]);
        let less = torn.compared(&runs(&[1.0, 1.0]), |[a, b]| a - b).expect("pairs");
        assert_eq!(less.each, [Some(3.0), None]);
        assert_eq!(less.estimate().map(|e| e.n), Some(1));
    }

    /// Ten thousand samples give their own mean exactly, but the figure of the recorded whole no better than its
    /// resamples do.
    #[test]
    fn resamples_widen_the_interval_and_leave_the_mean() {
        let apart = |by: f64| runs(&[5.0 - by, 5.0 + by].repeat(200));
        let [few, resamples] = [apart(0.1), apart(2.0)];
        let wide = few.with_resamples(&resamples).estimate().expect("samples");
        let (low, high) = wide.ci95.expect("400 samples");
        assert!((wide.mean - 5.0).abs() < 1e-9, "{wide:?}");
        // Both vary at once: 1.966 standard deviations of 2.1 at most, of 2.0 at least.
        assert!((3.9..4.2).contains(&((high - low) / 2.0)), "{wide:?}");
        let exact = few.with_resamples(&apart(0.0)).estimate().expect("samples");
        assert!((exact.mean - 5.0).abs() < 1e-9);
        assert!(exact.ci95.is_some_and(|(low, high)| high - low < 0.03), "{exact:?}");
        assert_eq!(few.with_resamples(&runs(&[])).estimate(), None);
    }

    /// A comparison that is repeated seven times has no more weight than one.
    #[test]
    fn loads_of_the_same_jobs_are_not_independent() {
        let of = batches(&[1.0, 5.0, 2.0]);
        let seven = Series::mean_of(&vec![of.clone(); 7]).expect("the same batches");
        assert_eq!((seven.estimate(), seven.each.len()), (of.estimate(), 3));
        assert_eq!(Series::pooled(&vec![of; 7]).each.len(), 21);
    }

    #[test]
    fn what_is_made_of_resamples_is_of_the_whole_with_the_resamples_about_it() {
        let of = Series { whole: Some(3.0), ..runs(&[1.0, 4.0, 7.0]) };
        let than = runs(&[2.0; 3]);
        // Each resample beside a figure that no chance has a part in.
        let less = of.compared(&than, |[a, b]| a - b).expect("pairs");
        assert_eq!(
            (less.whole, &less.each[..]),
            (Some(1.0), &[Some(-1.0), Some(2.0), Some(5.0)][..])
        );
        let mean = Series::mean_of(&[of.clone(), than]).expect("pairs");
        assert_eq!(mean.whole, Some(2.5));
        // Three resamples of deviation 3 do not make the figure any better known than one.
        let ours = of.estimate().expect("some");
        let (low, high) = ours.ci95.expect("three");
        assert!((ours.mean - 3.0).abs() < 1e-12 && high - low > 2.0 * 3.0 * 4.3, "{ours:?}");
    }

    #[test]
    fn what_is_made_of_a_saturated_load_has_no_interval() {
        let (steady, grows) = (batches(&[1.0; 20]), batches(&[2.0; 20]));
        let grows = Series { is_saturated: true, ..grows };
        let less = steady.compared(&grows, |[a, b]| b - a).and_then(|s| s.estimate());
        let mean = Series::mean_of(&[steady, grows]).and_then(|s| s.estimate());
        for ours in [less, mean] {
            assert!(ours.is_some_and(|e| e.is_saturated && e.ci95.is_none()), "{ours:?}");
        }
    }
}
