//! Makes every job follow what processors of just the right speed would make of it.
//!
//! A process that is behind gets a quota a little larger for a while, one that is ahead a smaller
//! one. What the foreground is owed goes to the foreground, and what the background is owed to the
//! background also while its foreground computes: each has a quota of its own then, below that of
//! their processor.

use std::time::{Duration, Instant};

use dormouse_tasks::ideal;

use super::job::Key;

/// What is owed is to be paid within this time.
const WITHIN: Duration = Duration::from_millis(100);

/// Quotas change by steps of this part of a processor: each change gives the processor a fresh
/// slice, and less is owed at any time, as a quota is paid out in slices.
const STEPS: i64 = 8;

/// The most that a processor gives in addition, or keeps back, in steps: the hosts' reserve is for
/// this, too, and the kernel has no quota of nothing.
const MOST: i64 = 4;
const LEAST: i64 = -7;

/// How much earlier than due a job is kept: its end takes that long to be reported.
const EARLY: Duration = Duration::from_millis(20);

/// CPU time that the end of a process takes, in nanoseconds: owed to one that has done its work.
const END_NS: i64 = 3_000_000;

/// What the processes on a processor are owed, in nanoseconds of CPU time; `None` where none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owed {
    pub(crate) foreground: Option<i64>,
    pub(crate) background: Option<i64>,
}

/// Quotas of a processor and, where it has one of its own, of each tier, in millionths of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quotas {
    pub(crate) processor: u32,
    pub(crate) foreground: Option<u32>,
    pub(crate) background: Option<u32>,
}

impl Quotas {
    /// Those that pay what is owed.
    pub(crate) fn paying(owed: Owed, core_ppm: u32) -> Self {
        let step_ns = i64::try_from(WITHIN.as_nanos()).unwrap_or(i64::MAX) / 1_000_000
            * i64::from(core_ppm)
            / STEPS;
        let steps = |owed: Option<i64>| (owed.unwrap_or(0) / step_ns.max(1)).clamp(LEAST, MOST);
        let ppm = |steps: i64| {
            u32::try_from(i64::from(core_ppm) * (STEPS + steps) / STEPS).unwrap_or(core_ppm)
        };
        let (above, below) = (steps(owed.foreground), steps(owed.background));
        let processor = ppm(above.max(0) + below.max(0)).min(1_000_000.max(core_ppm));
        Self {
            processor,
            foreground: (above < 0 || below > 0).then(|| ppm(above).min(processor)),
            background: (below < 0).then(|| ppm(below)),
        }
    }
}

/// The reference, and what is in force on every processor.
#[derive(Debug)]
pub(crate) struct Pace {
    begun: Instant,
    pub(crate) ideal: ideal::Machine<Key>,
    /// The quota of each processor and those of its slots `a` and `b`.
    pub(crate) in_force: Vec<(u32, [Option<u32>; 2])>,
}

impl Pace {
    pub(crate) fn new(processors: u32, core_ppm: u32) -> Self {
        let in_force = vec![(core_ppm, [None; 2]); processors as usize];
        Self { begun: Instant::now(), ideal: ideal::Machine::default(), in_force }
    }

    /// The reference goes on to this time.
    pub(crate) fn advance(&mut self, to: Instant) {
        self.ideal.advance(to.saturating_duration_since(self.begun));
    }

    /// A job that stood still goes on in the foreground of `on`, or begins again there.
    pub(crate) fn go_on(&mut self, key: Key, on: &[u32], again: bool) {
        if again {
            self.ideal.begin_again(key);
        }
        self.ideal.go_on(key, on);
    }

    /// What a process is to be given that is behind by so much, and whose job is through, in the
    /// reference.
    pub(crate) fn early(&self, key: Key, behind_ns: i64, core_ppm: u32) -> i64 {
        let early_ns = i64::try_from(EARLY.as_nanos()).unwrap_or(0) / 1_000_000;
        let end_ns = if self.ideal.ended(key).is_some() { END_NS } else { 0 };
        behind_ns + early_ns * i64::from(core_ppm) + end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tier_gets_what_it_is_owed_and_nothing_of_the_other_s() {
        let quotas = |foreground, background| {
            let ms = |ms: Option<i64>| ms.map(|ms| ms * 1_000_000);
            let owed = Owed { foreground: ms(foreground), background: ms(background) };
            let it = Quotas::paying(owed, 160_000);
            (it.processor / 1000, it.foreground.map(|p| p / 1000), it.background.map(|p| p / 1000))
        };
        // A step is 2 ms of CPU time, and 2 % of a core.
        assert_eq!(quotas(None, None), (160, None, None));
        assert_eq!(quotas(Some(1), Some(-1)), (160, None, None));
        assert_eq!(quotas(Some(4), None), (200, None, None));
        assert_eq!(quotas(Some(400), Some(0)), (240, None, None));
        assert_eq!(quotas(Some(-5), None), (160, Some(120), None));
        assert_eq!(quotas(Some(-500), None), (160, Some(20), None));
        assert_eq!(quotas(Some(0), Some(4)), (200, Some(160), None));
        assert_eq!(quotas(Some(4), Some(4)), (240, Some(200), None));
        assert_eq!(quotas(Some(-4), Some(4)), (200, Some(120), None));
        assert_eq!(quotas(Some(4), Some(-4)), (200, None, Some(120)));
        let all = Owed { foreground: Some(i64::MAX), background: Some(i64::MAX) };
        assert_eq!(Quotas::paying(all, 1_000_000).processor, 1_000_000, "a core is all there is");
    }
}
