//! A histogram with fixed buckets.

use dormouse_coordinator::DelayHistogram;

/// Upper bounds of a histogram's buckets for real seconds of a worker's actions: from a millisecond to ten seconds.
pub(super) const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds of a histogram's buckets for sizes of checkpoints in bytes: from 64 KiB to 16 GiB, each four times the bound
/// before.
pub(super) const BYTES: &[f64] = &[
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
    268_435_456.0,
    1_073_741_824.0,
    4_294_967_296.0,
    17_179_869_184.0,
];
/// Upper bounds of a histogram's buckets for timing errors as fractions of the promised time: from a thousandth to 1.
pub(super) const ERRORS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0];

/// Histogram that counts values by their size.
#[derive(Clone, Debug)]
pub(super) struct BucketHistogram {
    bounds: &'static [f64],
    /// Number of values in each bucket; one more than there are bounds.
    counts: Vec<u64>,
    sum: f64,
}

/// The content of a histogram, for encoding.
#[derive(Clone, Debug, Default)]
pub(super) struct HistogramCounts {
    /// Sum of all values that the histogram has counted.
    pub(super) sum: f64,
    /// Upper bound of each bucket, and the number of values in that bucket alone; the last bucket has no bound.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl BucketHistogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn add(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    pub(super) fn counted(&self) -> HistogramCounts {
        let bounds = self.bounds.iter().copied().chain([f64::MAX]);
        HistogramCounts {
            sum: self.sum,
            buckets: bounds.zip(self.counts.iter().copied()).collect(),
        }
    }
}

impl From<DelayHistogram> for HistogramCounts {
    fn from(delays: DelayHistogram) -> Self {
        let bound =
            |upper: Option<std::time::Duration>| upper.map_or(f64::MAX, |it| it.as_secs_f64());
        Self {
            sum: delays.sum.as_secs_f64(),
            buckets: delays.buckets.into_iter().map(|(upper, n)| (bound(upper), n)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_whose_bound_it_does_not_pass() {
        let mut histogram = BucketHistogram::new(&[1.0, 2.0]);
        [0.5, 1.0, 1.5, 2.5, 7.0].into_iter().for_each(|value| histogram.add(value));
        let counted = histogram.counted();
        assert_eq!(counted.buckets, [(1.0, 2), (2.0, 1), (f64::MAX, 2)]);
        assert!((counted.sum - 12.5).abs() < 1e-12);
    }
}
