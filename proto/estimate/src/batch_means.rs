//! Samples from one long run of parallel jobs: batch means (Law and Kelton, Simulation Modeling and
//! Analysis, section 9.5.3; the MEASY paper's section 3.3).

/// Number of batches after the warm-up.
pub const BATCHES: usize = 20;
/// Divisor for the warm-up: the first tenth of the jobs is left out.
const WARM_UP: usize = 10;

/// Sums of one metric per batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMeans {
    jobs: usize,
    sums: [f64; BATCHES],
    counts: [f64; BATCHES],
}

impl BatchMeans {
    /// Empty sums for a run of `jobs` jobs.
    #[must_use]
    pub const fn new(jobs: usize) -> Self {
        Self { jobs, sums: [0.0; BATCHES], counts: [0.0; BATCHES] }
    }

    /// Adds a job's value; `place` is the job's index in order of submission, which decides the batch.
    pub fn add(&mut self, place: usize, value: f64) {
        let warm_up = self.jobs / WARM_UP;
        let Some(at) = place.checked_sub(warm_up) else { return };
        let batch = (at * BATCHES / (self.jobs - warm_up).max(1)).min(BATCHES - 1);
        self.sums[batch] += value;
        self.counts[batch] += 1.0;
    }

    /// Means of the batches that have jobs.
    #[must_use]
    pub fn means(&self) -> Vec<f64> {
        let pairs = self.sums.iter().zip(&self.counts);
        pairs.filter(|(_, count)| **count > 0.0).map(|(sum, count)| sum / count).collect()
    }
}

/// True if the batch means rise from first to last: Mann's test (Econometrica 13, 1945), one-sided
/// at 0.1 %. Rising response times show a growing queue under saturated load: there is no steady
/// state with a mean to estimate.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "at most 20 batches")]
pub fn rises(means: &[f64]) -> bool {
    /// The normal distribution's quantile of 99.9 %.
    const QUANTILE: f64 = 3.090;
    let n = means.len() as f64;
    let pairs =
        means.iter().enumerate().flat_map(|(i, a)| means[i + 1..].iter().map(move |b| b - a));
    let sum: f64 = pairs.map(|rise| f64::from(i8::from(rise > 0.0) - i8::from(rise < 0.0))).sum();
    sum > QUANTILE * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt()
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_warm_up_and_the_rest_are_twenty_batches() {
        let mut made = BatchMeans::new(200);
        for place in 0..200 {
            made.add(place, if place < 20 { 1e9 } else { ((place - 20) / 9) as f64 });
        }
        assert_eq!(made.means(), (0..20).map(f64::from).collect::<Vec<_>>());
        assert_eq!(BatchMeans::new(5).means(), Vec::<f64>::new());
    }

    #[test]
    fn a_queue_that_grows_is_told_from_one_that_does_not() {
        let grows: Vec<f64> = (0..20).map(|n| f64::from(n) + f64::from(n % 3) * 4.0).collect();
        assert!(rises(&grows));
        assert!(!rises(&grows.iter().rev().copied().collect::<Vec<_>>()));
        assert!(!rises(&(0..20).map(|n| f64::from(n * 7 % 20)).collect::<Vec<_>>()));
        assert!(!rises(&[5.0; 20]) && !rises(&[1.0]) && !rises(&[]));
    }
}
