//! Means with confidence intervals: the estimator that all tables use.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Default confidence of an interval, as a fraction of one.
const CONFIDENCE: f64 = 0.95;

/// The 97.5 % quantile of the standard normal distribution.
const Z975: f64 = 1.959_963_984_540_054;

/// Estimate of a mean from independent samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the samples.
    pub mean: f64,
    /// The mean's 95 % confidence interval: Student's t, or Wilson's for a share; `None` for a
    /// single sample.
    pub ci95: Option<(f64, f64)>,
    /// The smallest and the largest sample.
    pub range: (f64, f64),
    /// The number of samples.
    pub n: usize,
    /// True if there is no interval because the samples come from a growing queue, which has no
    /// steady state.
    pub is_saturated: bool,
}

impl Estimate {
    /// Estimates the mean of these samples; `None` if there are none.
    #[must_use]
    pub fn from_samples(samples: &[f64]) -> Option<Self> {
        Self::with_confidence(samples, CONFIDENCE)
    }

    /// Estimates the mean with Student's interval at this confidence, between 0 and 1; `None` if there are no
    /// samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    pub fn with_confidence(samples: &[f64], confidence: f64) -> Option<Self> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
            let error = (squares / (n - 1) as f64 / n as f64).sqrt();
            let half = student_quantile(n - 1, f64::midpoint(confidence, 1.0)) * error;
            (mean - half, mean + half)
        });
        let low = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let high = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { mean, ci95, range: (low, high), n, is_saturated: false })
    }

    /// Estimates the share of ones among samples of 0 and 1, with Wilson's score interval (1927),
    /// which stays within 0 to 1; `None` if there are no samples or other values.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    pub fn share(samples: &[f64]) -> Option<Self> {
        let estimate = Self::from_samples(samples)
            .filter(|_| samples.iter().all(|x| [0.0, 1.0].contains(x)))?;
        let (share, n) = (estimate.mean, estimate.n as f64);
        let ci95 = estimate.ci95.map(|_| {
            let square = Z975 * Z975 / n;
            let centre = share + square / 2.0;
            let half = (square * (share * (1.0 - share) + square / 4.0)).sqrt();
            let end = |x: f64| (x / (1.0 + square)).clamp(0.0, 1.0);
            (end(centre - half), end(centre + half))
        });
        Some(Self { ci95, ..estimate })
    }

    /// A value that was counted exactly once, without an interval.
    #[must_use]
    pub const fn exact(value: f64, n: usize) -> Self {
        Self { mean: value, ci95: None, range: (value, value), n, is_saturated: false }
    }

    /// True if a value lies in the interval; false without an interval.
    #[must_use]
    pub fn covers(&self, value: f64) -> bool {
        self.ci95.is_some_and(|(low, high)| (low..=high).contains(&value))
    }

    /// Relative difference of the mean from `reference`; `None` if `reference` is zero.
    #[must_use]
    pub fn relative_to(&self, reference: f64) -> Option<f64> {
        (reference != 0.0).then(|| self.mean / reference - 1.0)
    }
}

/// The jackknife's pseudo-values of a statistic of the means of several paired series (Tukey 1958),
/// one per sample. Their [`Estimate`] is the estimate of the statistic.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
pub fn jackknife<const K: usize>(
    series: [&[f64]; K],
    statistic: impl Fn([f64; K]) -> f64,
) -> Vec<f64> {
    let n = series.iter().map(|samples| samples.len()).min().unwrap_or(0);
    let sums = series.map(|samples| samples[..n].iter().sum::<f64>());
    let whole = statistic(sums.map(|sum| sum / n as f64));
    if n < 2 {
        return vec![whole; n];
    }
    let rest = (n - 1) as f64;
    let without = |i: usize| {
        let means = std::array::from_fn(|k| (sums[k] - series[k][i]) / rest);
        n as f64 * whole - rest * statistic(means)
    };
    (0..n).map(without).collect()
}

/// Mean and standard deviation of values; `None` if there are none.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
pub fn normal(values: &[f64]) -> Option<(f64, f64)> {
    let mean = Estimate::from_samples(values)?.mean;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    Some((mean, (squares / (values.len().max(2) - 1) as f64).sqrt()))
}

/// The 97.5 % quantile of Student's t with this many degrees of freedom, at least one.
pub(crate) fn student975(freedom: usize) -> f64 {
    student_quantile(freedom, 0.975)
}

/// A quantile of Student's t with this many degrees of freedom, at least one.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn student_quantile(freedom: usize, quantile: f64) -> f64 {
    // The distribution has every degree from one on: the normal limit is never needed.
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(quantile))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_interval() {
        // Five samples of variance 2.5: 3 ± 2.776 · sqrt(2.5 / 5).
        let e = Estimate::from_samples(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (low, high) = e.ci95.unwrap();
        assert!((e.mean - 3.0).abs() < 1e-12);
        assert!((low - 1.037).abs() < 1e-3 && (high - 4.963).abs() < 1e-3, "{low} {high}");
        assert_eq!((e.range, e.n), ((1.0, 5.0), 5));
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let t975 = |freedom| student_quantile(freedom, 0.975);
        let steps: Vec<_> = (1..200).map(t975).collect();
        assert!(steps.windows(2).all(|w| w[0] > w[1]));
        for (freedom, table) in [(1, 12.706), (2, 4.303), (19, 2.093), (31, 2.0395), (100, 1.984)] {
            assert!((t975(freedom) - table).abs() < 6e-4, "{freedom}: {}", t975(freedom));
        }
    }

    #[test]
    fn pseudo_values_of_a_mean_are_the_samples_and_equal_ratios_have_no_interval() {
        let samples = [1.0, 2.0, 6.0, 7.0];
        let got = jackknife([&samples], |[mean]| mean);
        assert!(got.iter().zip(&samples).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?}");
        let half = samples.map(|x| x / 2.0);
        let ratio = Estimate::from_samples(&jackknife([&half, &samples], |[a, b]| a / b)).unwrap();
        let (low, high) = ratio.ci95.unwrap();
        assert!((ratio.mean - 0.5).abs() < 1e-12 && high - low < 1e-12, "{ratio:?}");
        assert_eq!(jackknife([&[3.0], &[2.0]], |[a, b]| a / b), [1.5]);
    }

    #[test]
    fn the_interval_of_a_share_is_wilsons_and_within_0_and_1() {
        let share = |met: usize, all: usize| {
            let samples: Vec<f64> = (0..all).map(|n| f64::from(u8::from(n < met))).collect();
            Estimate::share(&samples).unwrap()
        };
        for (met, all, low, high) in [
            (1, 5, 0.036_2, 0.624_5),
            (0, 10, 0.0, 0.277_5),
            (3, 10, 0.107_8, 0.603_2),
            (10, 10, 0.722_5, 1.0),
        ] {
            let of = share(met, all);
            let is = of.ci95.unwrap();
            assert!((is.0 - low).abs() < 1e-4 && (is.1 - high).abs() < 1e-4, "{met}/{all}: {is:?}");
            assert!((of.mean - met as f64 / all as f64).abs() < 1e-12 && of.n == all);
        }
        assert_eq!(share(1, 1).ci95, None);
        assert_eq!(Estimate::share(&[0.5, 1.0]), None);
        assert_eq!(Estimate::share(&[]), None);
    }

    #[test]
    fn more_confidence_takes_a_wider_interval() {
        let samples = [1.0, 2.0, 3.0, 4.0, 5.0];
        let half = |confidence| {
            let (low, high) =
                Estimate::with_confidence(&samples, confidence).unwrap().ci95.unwrap();
            (high - low) / 2.0
        };
        // The tables' 2.776 and 4.604 for four degrees of freedom.
        assert!((half(0.99) / half(0.95) - 4.604 / 2.776).abs() < 1e-3);
    }

    #[test]
    fn one_sample_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::from_samples(&[7.0]).unwrap().ci95, None);
        assert_eq!(Estimate::from_samples(&[]), None);
    }
}
