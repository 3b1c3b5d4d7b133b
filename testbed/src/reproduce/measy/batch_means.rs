//! Confidence intervals of one long run: batch means (section 3.3; Law and Kelton).

use dormouse_engine::jobs::Record;
use dormouse_workload::Estimate;
use serde::{Deserialize, Serialize};

/// Batches after the warm-up.
pub const BATCHES: usize = 20;
/// The first tenth of the jobs is warm-up and does not count.
const WARM_UP: usize = 10;

/// Sums of one metric by batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    /// The mean and its interval; `None` of no jobs.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.means())
    }

    /// By how many percent this mean is below `other`'s, as one value a batch whose mean it is (the
    /// jackknife's pseudo-values of the ratio; batches are paired: both runs have the same jobs).
    /// `None` where the runs have not the same batches.
    ///
    /// Values of the same batch in several pairs of runs on the same jobs are no independent samples:
    /// average them batch by batch.
    #[must_use]
    pub fn percent_below(&self, other: &Self) -> Option<Vec<f64>> {
        let (ours, theirs) = (self.means(), other.means());
        if ours.len() != theirs.len() || ours.is_empty() {
            return None;
        }
        let (sum_ours, sum_theirs): (f64, f64) = (ours.iter().sum(), theirs.iter().sum());
        let percent = |a: f64, b: f64| if b > 0.0 { 100.0 * (1.0 - a / b) } else { 0.0 };
        let whole = percent(sum_ours, sum_theirs);
        #[expect(clippy::cast_precision_loss, reason = "at most 20")]
        let n = ours.len() as f64;
        let without = |(a, b): (&f64, &f64)| percent(sum_ours - a, sum_theirs - b);
        Some(ours.iter().zip(&theirs).map(|at| n * whole - (n - 1.0) * without(at)).collect())
    }
}

/// The mean over several comparisons of the same batches, batch by batch; the batches are its
/// samples. `None` where they have not the same batches, or there are none.
#[must_use]
pub fn mean_by_batch(each: &[Vec<f64>]) -> Option<Estimate> {
    let batches = each.first()?.len();
    if each.iter().any(|values| values.len() != batches) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a mean of some comparisons")]
    let mean =
        |batch: usize| each.iter().map(|values| values[batch]).sum::<f64>() / each.len() as f64;
    Estimate::of(&(0..batches).map(mean).collect::<Vec<_>>())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn batches(value: impl Fn(usize) -> f64) -> BatchMeans {
        let mut made = BatchMeans::new(20);
        for batch in 0..BATCHES {
            (made.sums[batch], made.counts[batch]) = (value(batch), 1.0);
        }
        made
    }

    /// The same comparison seven times says no more than once.
    #[test]
    fn loads_of_the_same_jobs_are_not_independent() {
        let ours = batches(|batch| 1.0 + (batch % 5) as f64);
        let theirs = batches(|batch| 9.0 + (batch % 3) as f64);
        let once = ours.percent_below(&theirs).unwrap();
        let (one, seven) =
            (mean_by_batch(std::slice::from_ref(&once)), mean_by_batch(&vec![once; 7]));
        assert_eq!(one, seven);
        assert_eq!(one.unwrap().n, BATCHES);
        assert!(!one.unwrap().covers(one.unwrap().mean + 10.0));
    }

    #[test]
    fn equal_ratios_have_no_interval() {
        let (half, whole) = (batches(|n| 1.0 + n as f64), batches(|n| 2.0 * (1.0 + n as f64)));
        let got = Estimate::of(&half.percent_below(&whole).unwrap()).unwrap();
        let (low, high) = got.ci95.unwrap();
        assert!((got.mean - 50.0).abs() < 1e-9 && (high - low).abs() < 1e-9);
    }
}
