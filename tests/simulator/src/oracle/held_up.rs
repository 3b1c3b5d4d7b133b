//! The times in which faults delayed the reports of workers, as they happened and not as planned.

use std::collections::BTreeMap;
use std::time::Duration;

/// The intervals in which reports could not reach the log, in microseconds since the run's start.
#[derive(Clone, Debug, Default)]
pub struct HeldUp {
    /// Intervals for all workers: their coordinator was away.
    all: Vec<(u64, u64)>,
    /// Intervals for single workers, by their index in the plan.
    of: BTreeMap<usize, Vec<(u64, u64)>>,
}

impl HeldUp {
    /// Adds an interval in which no report of one worker, or of any (`None`), reaches the log.
    pub fn add(&mut self, worker: Option<usize>, from_us: u64, lasts: Duration) {
        let lasts = u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX);
        let interval = (from_us, from_us.saturating_add(lasts));
        match worker {
            Some(worker) => self.of.entry(worker).or_default().push(interval),
            None => self.all.push(interval),
        }
    }

    /// Whether the reports of a worker, by its index, were delayed at any time in this interval.
    #[must_use]
    pub fn touches(&self, worker: usize, since_us: u64, until_us: u64) -> bool {
        let own = self.of.get(&worker).into_iter().flatten();
        own.chain(&self.all).any(|(from, to)| *from <= until_us && *to >= since_us)
    }

    /// The longest time for which a report of one worker can have been delayed; intervals that touch count as one.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let of_worker = self.of.values().map(|own| longest(own.iter().chain(&self.all)));
        let longest = of_worker.fold(longest(self.all.iter()), u64::max);
        Duration::from_micros(longest)
    }
}

/// The length of the longest time that these intervals cover without a gap.
fn longest<'a>(intervals: impl Iterator<Item = &'a (u64, u64)>) -> u64 {
    let mut sorted: Vec<_> = intervals.copied().collect();
    sorted.sort_unstable();
    let (mut begun, mut covered, mut longest) = (0, 0, 0);
    for (from, until) in sorted {
        if from > covered {
            begun = from;
        }
        covered = covered.max(until);
        longest = longest.max(covered - begun);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_counts_together_and_what_does_not_alone() {
        let seconds = Duration::from_secs;
        let mut held_up = HeldUp::default();
        assert_eq!(held_up.longest(), Duration::ZERO);
        held_up.add(Some(0), 10_000_000, seconds(2));
        held_up.add(Some(0), 20_000_000, seconds(3));
        assert_eq!(held_up.longest(), seconds(3));
        // Of another worker.
        held_up.add(Some(1), 12_000_000, seconds(2));
        assert_eq!(held_up.longest(), seconds(3));
        // Of both: it follows one interval of either, and ends in another of the first.
        held_up.add(None, 12_000_000, seconds(8));
        assert_eq!(held_up.longest(), seconds(13));
        // One within another adds nothing.
        held_up.add(None, 13_000_000, seconds(1));
        assert_eq!(held_up.longest(), seconds(13));
    }
}
