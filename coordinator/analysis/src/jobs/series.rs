//! Quantities over time, in bins whose number is bounded even in long runs.

use dormouse_units::Time;

use crate::JobHistory;

/// Greatest number of bins of a series; if a series would need more, the width of its bins doubles.
const MAX_BINS: usize = 512;

/// A quantity that is followed over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobQuantity {
    /// Number of processors with a foreground job.
    Foreground,
    /// Number of processors with a background job.
    Background,
    /// Number of jobs that wait for processors.
    Waiting,
}

const QUANTITIES: usize = 3;

/// Integrals of each quantity over each bin, in unit × seconds.
///
/// A job is added when it has ended, with its whole time: the order in which jobs end does not
/// matter.
#[derive(Clone, Debug)]
pub struct JobSeries {
    width_us: u64,
    bins: Vec<[f64; QUANTITIES]>,
    /// For each bin, the amount by which each quantity rises or falls (negative) in this bin and in all later bins.
    steps: Vec<[f64; QUANTITIES]>,
}

impl Default for JobSeries {
    fn default() -> Self {
        Self { width_us: 1_000_000, bins: Vec::new(), steps: Vec::new() }
    }
}

impl JobSeries {
    /// Adds a job that started and ended at these times. Until its promotion, if any, it was in the
    /// background.
    pub fn add(&mut self, job: &JobHistory, (started, ended): (Time, Time)) {
        let processes = f64::from(job.job.processes);
        let promoted = job.foreground().unwrap_or(ended);
        self.add_over(JobQuantity::Waiting, 1.0, job.job.submitted, started);
        self.add_over(JobQuantity::Background, processes, started, promoted);
        self.add_over(JobQuantity::Foreground, processes, promoted, ended);
    }

    fn add_over(&mut self, of: JobQuantity, amount: f64, from: Time, until: Time) {
        if until <= from {
            return;
        }
        let (from, until) = (from.as_micros(), until.as_micros());
        while until / self.width_us >= MAX_BINS as u64 {
            self.double_width();
        }
        let (first, last) = ((from / self.width_us) as usize, (until / self.width_us) as usize);
        if self.bins.len() <= last {
            self.bins.resize(last + 1, [0.0; QUANTITIES]);
            self.steps.resize(last + 1, [0.0; QUANTITIES]);
        }
        #[expect(clippy::cast_precision_loss, reason = "for a plot")]
        let share = |us: u64| us as f64 / self.width_us as f64;
        let of = of as usize;
        if first == last {
            self.bins[first][of] += amount * share(until - from);
            return;
        }
        self.bins[first][of] +=
            amount * share((first as u64 + 1).saturating_mul(self.width_us) - from);
        self.bins[last][of] += amount * share(until - last as u64 * self.width_us);
        self.steps[first + 1][of] += amount;
        self.steps[last][of] -= amount;
    }

    /// Doubles the width of the bins: each two neighbours become one.
    fn double_width(&mut self) {
        let means = self.bin_means();
        self.width_us *= 2;
        self.bins = means
            .chunks(2)
            .map(|pair| {
                let second = pair.get(1).copied().unwrap_or_default();
                std::array::from_fn(|n| f64::midpoint(pair[0][n], second[n]))
            })
            .collect();
        self.steps = vec![[0.0; QUANTITIES]; self.bins.len()];
    }

    fn bin_means(&self) -> Vec<[f64; QUANTITIES]> {
        let mut level = [0.0; QUANTITIES];
        self.bins
            .iter()
            .zip(&self.steps)
            .map(|(bin, step)| {
                for (level, step) in level.iter_mut().zip(step) {
                    *level += step;
                }
                std::array::from_fn(|n| bin[n] + level[n])
            })
            .collect()
    }

    /// For each bin, the time of its middle, in seconds, and the mean of a quantity over the bin.
    #[must_use]
    pub fn points(&self, quantity: JobQuantity) -> Vec<(f64, f64)> {
        #[expect(clippy::cast_precision_loss, reason = "for a plot")]
        let width = self.width_us as f64 / 1e6;
        let means = self.bin_means();
        (0_u32..)
            .zip(means)
            .map(|(n, means)| ((f64::from(n) + 0.5) * width, means[quantity as usize]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::from_secs(s)
    }

    #[test]
    fn the_times_of_a_hostile_log_have_their_bins() {
        let mut series = JobSeries::default();
        for (from, until) in [(u64::MAX / 2, u64::MAX), (u64::MAX - 1, u64::MAX), (0, 1)] {
            let [from, until] = [from, until].map(Time::from_micros);
            series.add_over(JobQuantity::Waiting, 1.0, from, until);
        }
        assert!(series.points(JobQuantity::Waiting).len() <= MAX_BINS);
    }

    /// The integral over all bins equals the sum of what was added, however wide the bins become.
    #[test]
    fn integrals_are_kept() {
        let mut series = JobSeries::default();
        let mut expected = 0.0;
        for n in 0..300_u64 {
            let (from, until) = (at(n * 17 % 5_000), at(n * 17 % 5_000 + n * n % 900 + 1));
            series.add_over(JobQuantity::Foreground, 3.0, from, until);
            expected += 3.0 * until.since(from).as_secs_f64();
        }
        let points = series.points(JobQuantity::Foreground);
        assert!(points.len() <= MAX_BINS);
        let width = points[1].0 - points[0].0;
        let sum: f64 = points.iter().map(|(_, mean)| mean * width).sum();
        assert!((sum / expected - 1.0).abs() < 1e-9, "{sum} for {expected}");
        assert!(series.points(JobQuantity::Waiting).iter().all(|(_, mean)| mean.abs() < 1e-12));
    }

    #[test]
    fn a_constant_is_constant() {
        let mut series = JobSeries::default();
        series.add_over(JobQuantity::Waiting, 2.0, at(0), at(400));
        let points = series.points(JobQuantity::Waiting);
        assert!(points[..400].iter().all(|&(_, mean)| (mean - 2.0).abs() < 1e-12));
    }
}
