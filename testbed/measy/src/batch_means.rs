//! Confidence intervals of one long run: batch means (section 3.3; Law and Kelton).

use dormouse_engine::jobs::Record;

/// Batches after the warm-up.
pub const BATCHES: usize = 20;
/// The .975 quantile of Student's t with 19 degrees of freedom.
const T: f64 = 2.093;
/// The first tenth of the jobs is warm-up and does not count.
const WARM_UP: usize = 10;

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Batches or cells that it is from.
    pub n: usize,
}

impl Estimate {
    /// From independent values of the same quantity, with Student's t where there are as
    /// many as batches, else its normal limit.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let count = n.max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        if n < 2 {
            return Self { mean, low: mean, high: mean, n };
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let t = if n <= BATCHES { T } else { 1.96 };
        let half = t * (variance / count).sqrt();
        Self { mean, low: mean - half, high: mean + half, n }
    }
}

/// Sums of one metric by batch.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    jobs: usize,
    sums: [f64; BATCHES],
    counts: [f64; BATCHES],
}

impl BatchMeans {
    /// Of a run of `jobs` jobs.
    #[must_use]
    pub const fn new(jobs: usize) -> Self {
        Self { jobs, sums: [0.0; BATCHES], counts: [0.0; BATCHES] }
    }

    /// Counts a job in: its batch is by its place in the order of submission.
    pub fn add(&mut self, record: &Record, value: f64) {
        let warm_up = self.jobs / WARM_UP;
        let Some(at) = (record.id.get() as usize).checked_sub(warm_up) else { return };
        let batch = (at * BATCHES / (self.jobs - warm_up).max(1)).min(BATCHES - 1);
        self.sums[batch] += value;
        self.counts[batch] += 1.0;
    }

    /// The means of the batches that have jobs.
    #[must_use]
    pub fn means(&self) -> Vec<f64> {
        let pairs = self.sums.iter().zip(&self.counts);
        pairs.filter(|(_, count)| **count > 0.0).map(|(sum, count)| sum / count).collect()
    }

    /// The mean and its interval.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        Estimate::of(&self.means())
    }

    /// By how many percent this mean is below `other`'s, batches paired: both runs have the
    /// same jobs. The interval is the jackknife's of a ratio.
    #[must_use]
    pub fn percent_below(&self, other: &Self) -> Estimate {
        let (ours, theirs) = (self.means(), other.means());
        if ours.len() != theirs.len() || ours.is_empty() {
            return Estimate { mean: f64::NAN, low: f64::NAN, high: f64::NAN, n: 0 };
        }
        let (sum_ours, sum_theirs): (f64, f64) = (ours.iter().sum(), theirs.iter().sum());
        let percent = |a: f64, b: f64| if b > 0.0 { 100.0 * (1.0 - a / b) } else { 0.0 };
        let whole = percent(sum_ours, sum_theirs);
        #[expect(clippy::cast_precision_loss, reason = "at most 20")]
        let n = ours.len() as f64;
        let pseudo: Vec<f64> = ours
            .iter()
            .zip(&theirs)
            .map(|(a, b)| n * whole - (n - 1.0) * percent(sum_ours - a, sum_theirs - b))
            .collect();
        Estimate::of(&pseudo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let got = Estimate::of(&values);
        // Deviation 5.916, over the root of 20, times 2.093.
        assert!((got.mean - 9.5).abs() < 1e-12 && (got.high - got.mean - 2.7687).abs() < 1e-3);
    }

    #[test]
    fn equal_ratios_have_no_interval() {
        let mut half = BatchMeans::new(20);
        let mut whole = BatchMeans::new(20);
        for batch in 0..BATCHES {
            half.sums[batch] = 1.0 + batch as f64;
            whole.sums[batch] = 2.0 * half.sums[batch];
            half.counts[batch] = 1.0;
            whole.counts[batch] = 1.0;
        }
        let got = half.percent_below(&whole);
        assert!((got.mean - 50.0).abs() < 1e-9 && (got.high - got.low).abs() < 1e-9);
    }
}
