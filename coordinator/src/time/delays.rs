//! Histogram of delays, shared by those that measure and those that observe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in microseconds; longer delays are in a last one.
const BOUNDS_US: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000,
];

/// Counters of delays. Adding and reading never block, as each counter is atomic.
#[derive(Debug, Default)]
pub(crate) struct DelayCounts {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    last_us: AtomicU64,
    worst_us: AtomicU64,
}

/// Histogram of the delays measured so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayHistogram {
    /// Upper bound of each bucket, and the number of delays in it alone; `None`: no bound.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// Sum of all delays.
    pub sum: Duration,
    /// Latest delay; `None` before the first.
    pub last: Option<Duration>,
    /// Longest delay; `None` before the first.
    pub worst: Option<Duration>,
}

impl DelayCounts {
    /// Adds a delay.
    pub(crate) fn add_delay(&self, took: Duration) {
        let us = to_micros(took);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        self.last_us.store(us, Ordering::Relaxed);
        self.worst_us.fetch_max(us, Ordering::Relaxed);
        // Whoever sees it counted sees its other numbers, too.
        self.buckets[bucket].fetch_add(1, Ordering::Release);
    }

    /// Returns the longest delay in microseconds.
    pub(crate) fn worst_us(&self) -> u64 {
        self.worst_us.load(Ordering::Relaxed)
    }

    /// Returns the histogram as it is now.
    pub(crate) fn histogram(&self) -> DelayHistogram {
        let bounds = BOUNDS_US.map(|us| Some(Duration::from_micros(us)));
        let counts = self.buckets.iter().map(|count| count.load(Ordering::Acquire));
        let buckets: Vec<_> = bounds.into_iter().chain([None]).zip(counts).collect();
        let any = buckets.iter().any(|(_, count)| *count > 0);
        let read = |us: &AtomicU64| Duration::from_micros(us.load(Ordering::Relaxed));
        DelayHistogram {
            buckets,
            sum: read(&self.sum_us),
            last: any.then(|| read(&self.last_us)),
            worst: any.then(|| read(&self.worst_us)),
        }
    }
}

impl DelayHistogram {
    /// Returns the number of delays.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

fn to_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_in_the_first_bucket_whose_bound_it_does_not_pass() {
        let delays = DelayCounts::default();
        let none = delays.histogram();
        assert_eq!((none.count(), none.last, none.worst), (0, None, None));
        for us in [500, 501, 7_000, 2_500_001, 3_000] {
            delays.add_delay(Duration::from_micros(us));
        }
        let seen = delays.histogram();
        let of = |us: u64| {
            let bound = Some(Duration::from_micros(us));
            seen.buckets.iter().find(|(upper, _)| *upper == bound).map(|(_, count)| *count)
        };
        assert_eq!([of(500), of(1_000), of(5_000), of(10_000)], [Some(1); 4]);
        assert_eq!(seen.buckets.last(), Some(&(None, 1)));
        assert_eq!(seen.count(), 5);
        assert_eq!(seen.sum, Duration::from_micros(2_511_002));
        assert_eq!(seen.last, Some(Duration::from_micros(3_000)));
        assert_eq!(seen.worst, Some(Duration::from_micros(2_500_001)));
    }
}
