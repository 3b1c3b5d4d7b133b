//! Makes every job follow what processors of just the right speed would make of it.
//!
//! A process that is behind gets a quota a little larger for a while, one that is ahead a smaller
//! one. What the foreground is owed goes to the foreground, and what the background is owed to the
//! background also while its foreground computes: each has a quota of its own then, below that of
//! their processor.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use dormouse_tasks::ideal::{self, Change};

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
const EARLY: Duration = Duration::from_millis(8);

/// The most by which a job can be through before it should be.
const FORESEEN: Duration = Duration::from_millis(100);

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

/// How long a command may be on its way: what the reference makes of the time before is final.
const LAG: Duration = Duration::from_secs(1);

/// The reference, and what is in force on every processor. Its time is the run's clock, in real
/// time, on which commands say when they were decided.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Of a second of real time.
    emulated_us: u64,
    /// When the run's clock was at zero, as far as commands that took no time to come would tell.
    zero: Option<Instant>,
    /// Up to a while ago.
    settled: ideal::Machine<Key>,
    /// What happened since, by when and in which order.
    pending: BTreeMap<(Duration, u64), Change<Key>>,
    changes: u64,
    /// Up to now.
    pub(crate) ideal: ideal::Machine<Key>,
    /// The quota of each processor and those of its slots `a` and `b`.
    pub(crate) in_force: Vec<(u32, [Option<u32>; 2])>,
}

impl Pace {
    pub(crate) fn new(processors: u32, core_ppm: u32, emulated_us_per_second: u64) -> Self {
        Self {
            emulated_us: emulated_us_per_second.max(1),
            zero: None,
            settled: ideal::Machine::default(),
            pending: BTreeMap::new(),
            changes: 0,
            ideal: ideal::Machine::default(),
            in_force: vec![(core_ppm, [None; 2]); processors as usize],
        }
    }

    /// When a command was decided, in the reference's time: as it says, or when it came.
    pub(crate) fn decided(&mut self, at_us: u64, came: Instant) -> Duration {
        let at = ideal::real(at_us, self.emulated_us);
        if at_us == 0 {
            return self.time(came);
        }
        let zero = came.checked_sub(at).unwrap_or(came);
        self.zero = Some(self.zero.map_or(zero, |known| known.min(zero)));
        at
    }

    fn time(&mut self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.zero.get_or_insert(now))
    }

    /// Something happens at this time.
    pub(crate) fn change(&mut self, at: Duration, change: Change<Key>) {
        let settled = self.settled.now();
        if at < settled {
            let late = settled.saturating_sub(at);
            tracing::warn!(?late, "a command came too late for the reference");
        }
        self.changes += 1;
        self.pending.insert((at, self.changes), change);
    }

    /// The reference goes on to now. Jobs that are through there and, as `is_gone` says, here
    /// are forgotten.
    pub(crate) fn advance(&mut self, now: Instant, is_gone: impl Fn(Key) -> bool) {
        let now = self.time(now);
        let settled = now.saturating_sub(LAG);
        while let Some(first) = self.pending.first_entry().filter(|first| first.key().0 <= settled)
        {
            let ((at, _), change) = first.remove_entry();
            self.settled.advance(at);
            self.settled.apply(change);
        }
        self.settled.advance(settled);
        self.settled.forget(is_gone);
        self.ideal = self.settled.clone();
        for ((at, _), change) in self.pending.range(..=(now, u64::MAX)) {
            self.ideal.advance(*at);
            self.ideal.apply(change.clone());
        }
        self.ideal.advance(now);
    }

    /// When a job that is over here should be, on the run's clock in emulated microseconds (zero
    /// where nobody says), and how much later than that it is now, in real ones.
    pub(crate) fn due(&mut self, key: Key, now: Instant) -> (u64, i64) {
        self.advance(now, |_| false);
        let now = self.time(now);
        let mut machine = self.ideal.clone();
        let limit = machine.now() + FORESEEN;
        machine.advance_to_end(key, limit);
        let emulated_us = |at: Duration| {
            (at.as_nanos() * u128::from(self.emulated_us) + 500_000_000) / 1_000_000_000
        };
        let us = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        machine
            .ended(key)
            .map_or((0, 0), |at| (u64::try_from(emulated_us(at)).unwrap_or(0), us(now) - us(at)))
    }

    /// What a process is to be given that is behind by so much, and whose job is through, in the
    /// reference.
    pub(crate) fn early(&self, key: Key, behind_ns: i64, core_ppm: u32) -> i64 {
        let early_ns = i64::try_from(EARLY.as_nanos()).unwrap_or(0) / 1_000_000;
        // It is still there: whatever is counted, it has something left to do.
        if self.ideal.ended(key).is_some() {
            return behind_ns.max(0) + END_NS;
        }
        behind_ns + early_ns * i64::from(core_ppm)
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
