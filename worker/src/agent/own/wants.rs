//! The time for which a program wanted to compute: what its threads computed, and waited for a processor.

use std::{collections::BTreeMap, fs, time::Duration};

use tokio::time::Instant;

use crate::cgroup::CpuQuota;

/// Period of the quota of a slot, unless its share is tiny. With a small share most of the period is spent waiting.
const PERIOD: Duration = Duration::from_micros(CpuQuota::DEFAULT_PERIOD_US);
/// Longest period that the kernel allows.
const LONGEST_PERIOD: Duration = Duration::from_secs(1);

/// Finds when the threads of a program don't want to compute. For each thread the kernel counts the time that it has
/// computed and that it has waited for a processor, by its quota or for others (`/proc/PID/schedstat`).
#[derive(Debug, Default)]
pub(crate) struct ProcessorWants {
    /// CPU time and waiting time of each thread, summed, at the last look.
    threads: BTreeMap<i32, Duration>,
    looked: Option<Instant>,
    /// Nanoseconds that were counted as not wanted, but may have been wanted: the kernel counts a thread's wait for a
    /// processor only once the thread has got one.
    unsure: i64,
}

impl ProcessorWants {
    /// Leaves the time until the next call of [`Self::idle_since_look`] out of the count.
    pub(crate) fn pause_count(&mut self) {
        self.looked = None;
    }

    /// Returns the nanoseconds in which no thread wanted to compute since the last look, given the current times of
    /// all threads; negative if some of what was returned before turns out to have been a wait for a processor.
    /// Several threads that want to compute at different times count as one that wants to for as long as the busiest
    /// of them: the rest counts as not wanted.
    ///
    /// The result is off by at most one such wait, which under a quota is most of a period. (Without taking anything
    /// back, each look added a part of a wait: 2.4 % of the time at a fifth of a core.)
    pub(crate) fn idle_since_look(
        &mut self,
        now: Instant,
        threads: impl IntoIterator<Item = (i32, Duration)>,
    ) -> i64 {
        let threads: BTreeMap<_, _> = threads.into_iter().collect();
        let since = |(id, came_to): (&i32, &Duration)| {
            came_to.saturating_sub(self.threads.get(id).copied().unwrap_or_default())
        };
        let wanted = threads.iter().map(since).max().unwrap_or_default();
        self.threads = threads;
        let Some(then) = self.looked.replace(now) else {
            // What it waited for when it was paused is not known any more: it was its quota at most times.
            return -std::mem::take(&mut self.unsure).min(signed_nanos(PERIOD));
        };
        let passed = signed_nanos(now.saturating_duration_since(then));
        let missing = passed - signed_nanos(wanted);
        let counted = missing.max(-self.unsure);
        self.unsure = (self.unsure + counted).min(signed_nanos(LONGEST_PERIOD));
        if !wanted.is_zero() {
            // A wait that a thread is in began after the last time that it ran.
            self.unsure = self.unsure.min(passed);
        }
        counted
    }
}

fn signed_nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the time that a thread has computed or waited for a processor; `None`: the thread is gone.
pub(crate) fn wanted_by(thread: i32) -> Option<(i32, Duration)> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((thread, Duration::from_nanos(ran.saturating_add(waited))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MS_NS: i64 = 1_000_000;

    #[test]
    fn what_no_thread_wants_is_waited() {
        let (mut wants, begin) = (ProcessorWants::default(), Instant::now());
        assert_eq!(wants.idle_since_look(begin, [(1, 50 * MS)]), 0);
        // Of 100 ms thread 1 wants 30, and thread 2, which is new, 60.
        let at = begin + 100 * MS;
        assert_eq!(wants.idle_since_look(at, [(1, 80 * MS), (2, 60 * MS)]), 40 * MS_NS);
        // All of it, and a little more than passed.
        assert_eq!(wants.idle_since_look(at + 10 * MS, [(2, 71 * MS)]), -MS_NS);
        wants.pause_count();
        // What it may have waited for just before the pause is taken back, no more than passed then.
        assert_eq!(wants.idle_since_look(at + 999 * MS, [(2, 71 * MS)]), -10 * MS_NS);
        assert_eq!(wants.idle_since_look(at + 1009 * MS, []), 10 * MS_NS);
    }

    /// Returns the time that the kernel has counted after `ms` milliseconds for a thread that computes under a quota of
    /// `quota` milliseconds in every 20.
    fn throttled(quota: u64, ms: u64) -> Duration {
        let (periods, rest) = (ms / 20, ms % 20);
        // It computes at the beginning of each period, and has its wait counted when the next one begins.
        Duration::from_millis(periods * 20 + rest.min(quota))
    }

    #[test]
    fn a_program_that_waits_for_its_quota_alone_has_not_waited() {
        for (quota, step) in [(1, 103), (4, 103), (4, 7), (4, 2), (5, 33), (10, 103), (19, 11)] {
            let (mut wants, begin) = (ProcessorWants::default(), Instant::now());
            let (mut said, mut worst) = (0, 0);
            for ms in (0..10_000).step_by(step) {
                let at = begin + Duration::from_millis(ms);
                said += wants.idle_since_look(at, [(1, throttled(quota, ms))]);
                worst = worst.max(said);
            }
            let wait = signed_nanos(Duration::from_millis(20 - quota));
            assert!((0..=wait).contains(&said) && worst <= wait, "{said} of {quota} ms in 20");
        }
    }

    /// The program sleeps for half of each second, and computes under a quota in the other half.
    #[test]
    fn a_program_that_sleeps_has_waited_for_as_long() {
        let (mut wants, begin, mut said) = (ProcessorWants::default(), Instant::now(), 0);
        for ms in (0..=10_000).step_by(100) {
            let (whole, rest) = (ms / 1_000, ms % 1_000);
            let came_to = throttled(4, whole * 500 + rest.min(500));
            said += wants.idle_since_look(begin + Duration::from_millis(ms), [(1, came_to)]);
        }
        assert!((said - 5_000 * MS_NS).abs() <= 16 * MS_NS, "{said}");
    }

    #[test]
    fn this_thread_has_computed() {
        let me = nix::unistd::gettid().as_raw();
        let before = wanted_by(me).map(|(_, came_to)| came_to);
        let mut sum = 0_u64;
        while wanted_by(me).map(|(_, came_to)| came_to) <= before {
            sum = std::hint::black_box(sum + 1);
        }
        assert_eq!(wanted_by(i32::MAX), None);
    }
}
