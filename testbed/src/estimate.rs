//! Means with their confidence intervals.

/// The mean of independent samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The mean's 95 % confidence interval (Student's t); `None` for a single sample.
    pub ci95: Option<(f64, f64)>,
    /// The smallest and the largest sample.
    pub range: (f64, f64),
    /// The number of samples.
    pub n: usize,
}

impl Estimate {
    /// Of these samples; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
            let error = (squares / (n - 1) as f64 / n as f64).sqrt();
            let half = t975(n - 1) * error;
            (mean - half, mean + half)
        });
        let low = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let high = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { mean, ci95, range: (low, high), n })
    }

    /// How far the mean is from `reference`, relative to it; `None` if that is zero.
    #[must_use]
    pub fn relative_to(&self, reference: f64) -> Option<f64> {
        (reference != 0.0).then(|| self.mean / reference - 1.0)
    }
}

/// Mean and standard deviation; none of none.
pub(crate) fn normal(values: &[f64]) -> Option<(f64, f64)> {
    let mean = Estimate::of(values)?.mean;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    Some((mean, (squares / (values.len().max(2) - 1) as f64).sqrt()))
}

/// The 97.5 % quantile of Student's t with this many degrees of freedom: a table up to 30,
/// Cornish and Fisher's expansion beyond.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn t975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    freedom.checked_sub(1).and_then(|i| TABLE.get(i)).copied().unwrap_or_else(|| {
        let (z, n) = (1.959_963_985_f64, freedom.max(1) as f64);
        let (z3, z5) = (z.powi(3), z.powi(5));
        z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_interval() {
        // Five samples of variance 2.5: 3 ± 2.776 · sqrt(2.5 / 5).
        let e = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (low, high) = e.ci95.unwrap();
        assert!((e.mean - 3.0).abs() < 1e-12);
        assert!((low - 1.037).abs() < 1e-3 && (high - 4.963).abs() < 1e-3, "{low} {high}");
        assert_eq!((e.range, e.n), ((1.0, 5.0), 5));
    }

    #[test]
    fn the_quantiles_go_on_where_the_table_ends() {
        let steps: Vec<_> = (1..200).map(t975).collect();
        assert!(steps.windows(2).all(|w| w[0] > w[1]));
        assert!((t975(31) - 2.0395).abs() < 1e-3 && (t975(100) - 1.984).abs() < 1e-3);
    }

    #[test]
    fn one_sample_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::of(&[7.0]).unwrap().ci95, None);
        assert_eq!(Estimate::of(&[]), None);
    }
}
