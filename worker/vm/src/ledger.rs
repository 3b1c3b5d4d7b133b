//! Account of the CPU time that a task was promised and received, and what follows from the difference: the task runs,
//! runs a little faster, or is stopped. Without clock or IO.
//!
//! All amounts are CPU time of the host in nanoseconds. What is *promised* is what the task should have done by now at
//! the speed of its VM ([`crate::Model`]); *worked* is what the task has done, by its own report. The difference is
//! kept small and above zero: the kernel hands out a quota in slices, so a task that is to end on time must be a slice
//! or two ahead, and then waits for the time that it is early.

use std::time::Duration;

use dormouse_units::Ppm;

/// Number of CPU slices by which a task is kept ahead of its promise.
const AHEAD: i64 = 2;
/// Number of CPU slices, beyond [`AHEAD`], by which a task may be ahead of its promise before it is stopped.
const TOO_FAR: i64 = 2;
/// Time within which a task that is behind catches up, if the largest quota allows it.
const CATCH_UP: Duration = Duration::from_millis(500);
/// Largest factor by which a quota is raised for catching up, in ppm: the rest of the host is promised to other tasks.
const MAX_QUOTA_PPM: u64 = 1_500_000;
/// Step of quota factors, in ppm: every change of a quota hands out one extra slice.
const STEP: u64 = 50_000;

/// Quota that the kernel enforces on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelQuota {
    /// CPU time handed out at a time, in nanoseconds.
    pub slice: u64,
    /// Average share of a host core, in ppm.
    pub ppm: u32,
}

/// What a task must do next so that it keeps to its promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPace {
    /// The task must stop until it is promised a certain CPU time.
    Stand {
        /// CPU time, in nanoseconds, that must be promised to the task before it continues.
        until: u64,
    },
    /// The task must run with its quota multiplied by a factor.
    Run {
        /// Factor of the quota, at least one.
        times: Ppm,
    },
}

/// Account of one task's promised and received CPU time.
///
/// Use: [`TaskLedger::come_with`] if it begins from a checkpoint, then [`TaskLedger::set_pace`] or
/// [`TaskLedger::hold_task`] each time its progress is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLedger {
    whole: u64,
    came_with: u64,
    ahead: u64,
    behind: u64,
    times: Ppm,
    stands: bool,
}

impl TaskLedger {
    /// Makes the account of a task whose whole work takes `whole` nanoseconds of CPU time.
    #[must_use]
    pub const fn new(whole: u64) -> Self {
        Self { whole, came_with: 0, ahead: 0, behind: 0, times: Ppm::ONE, stands: false }
    }

    /// Records that the task begins with the part `done` of its work done; returns the CPU time of that part in nanoseconds. If
    /// that is more than the task is promised, the task is stopped until the promise catches up, and doesn't count as ahead.
    pub fn come_with(&mut self, done: Ppm) -> u64 {
        self.came_with = self.part_of_work(done);
        self.came_with
    }

    /// Returns the CPU time that the part `done` of the task's work takes, in nanoseconds.
    #[must_use]
    pub fn part_of_work(&self, done: Ppm) -> u64 {
        done.scale_number(self.whole)
    }

    /// Returns the CPU time that the task's whole work takes, in nanoseconds.
    #[must_use]
    pub const fn whole_work(&self) -> u64 {
        self.whole
    }

    /// Returns the largest CPU time, in nanoseconds, by which the task was seen ahead of its promise.
    #[must_use]
    pub const fn most_ahead(&self) -> u64 {
        self.ahead
    }

    /// Returns the largest CPU time, in nanoseconds, by which the task was seen behind its promise.
    #[must_use]
    pub const fn most_behind(&self) -> u64 {
        self.behind
    }

    /// Records the CPU times, in nanoseconds, that the task is promised and has worked by now.
    pub fn note_progress(&mut self, promised: u64, worked: u64) {
        let promised_at_least = promised.max(self.came_with);
        self.ahead = self.ahead.max(worked.saturating_sub(promised_at_least));
        self.behind = self.behind.max(promised.saturating_sub(worked));
    }

    /// Decides what a task that should be stopped for a checkpoint does next: if it is behind its promise it is paced as usual,
    /// else it is stopped until it is no longer too far ahead of its promise.
    pub fn hold_task(&mut self, promised: u64, worked: u64, quota: KernelQuota) -> TaskPace {
        if worked < promised {
            return self.set_pace(promised, worked, quota);
        }
        self.note_progress(promised, worked);
        (self.stands, self.times) = (true, Ppm::ONE);
        let wanted = quota.slice.saturating_mul(AHEAD.unsigned_abs());
        // Once anything more is promised the hold is over.
        let over = promised + self.whole / 100_000 + 1;
        TaskPace::Stand { until: worked.saturating_sub(wanted).max(over) }
    }

    /// Decides whether a task runs or stops next, and with which quota, from the CPU times that it is promised and has worked by
    /// now, in nanoseconds.
    pub fn set_pace(&mut self, promised: u64, worked: u64, quota: KernelQuota) -> TaskPace {
        let KernelQuota { slice, ppm } = quota;
        self.note_progress(promised, worked);
        let slice = i64::try_from(slice).unwrap_or(i64::MAX / 8).min(i64::MAX / 8);
        let lead = signed_difference(worked, promised);
        let (wanted, limit) = (AHEAD * slice, (AHEAD + TOO_FAR) * slice);
        self.stands = lead > if self.stands { wanted } else { limit };
        if self.stands {
            self.times = Ppm::ONE;
            return TaskPace::Stand { until: worked.saturating_sub(wanted.unsigned_abs()) };
        }
        let missing = wanted - lead;
        let enlarged = self.times > Ppm::ONE;
        // Once enlarged the quota stays so until nothing is missing.
        self.times = if missing <= if enlarged { 0 } else { slice } {
            Ppm::ONE
        } else {
            let rate = u64::from(ppm.max(1)) * u64::try_from(CATCH_UP.as_micros()).unwrap_or(1);
            // In ppm of what the quota gives in that time.
            let more = u128::from(missing.unsigned_abs()) * 1_000_000_000 / u128::from(rate);
            let more = u64::try_from(more).unwrap_or(MAX_QUOTA_PPM).max(STEP).div_ceil(STEP) * STEP;
            let times = u32::try_from((1_000_000 + more).min(MAX_QUOTA_PPM)).unwrap_or(1_000_000);
            // Not less while it still catches up: it would be another change.
            Ppm::new(times).max(self.times)
        };
        TaskPace::Run { times: self.times }
    }
}

fn signed_difference(a: u64, b: u64) -> i64 {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    signed(a) - signed(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const QUOTA: KernelQuota = KernelQuota { slice: MS, ppm: 50_000 };

    #[test]
    fn what_a_task_came_with_is_stood_for_and_nobodys_fault() {
        let mut ledger = TaskLedger::new(500 * MS);
        assert_eq!(ledger.come_with(Ppm::new(100_000)), 50 * MS);
        assert_eq!(ledger.set_pace(30 * MS, 51 * MS, QUOTA), TaskPace::Stand { until: 49 * MS });
        assert_eq!(ledger.most_ahead(), MS);
        assert_eq!(ledger.set_pace(50 * MS, 51 * MS, QUOTA), TaskPace::Run { times: Ppm::ONE });
        ledger.set_pace(60 * MS, 62 * MS, QUOTA);
        assert_eq!(ledger.most_ahead(), 2 * MS);
    }

    #[test]
    fn who_is_ahead_stands_still_until_it_is_not() {
        let mut ledger = TaskLedger::new(500 * MS);
        let mut pace = |promised, worked| ledger.set_pace(promised * MS, worked * MS, QUOTA);
        let run = TaskPace::Run { times: Ppm::ONE };
        assert_eq!(pace(10, 12), run);
        assert_eq!(pace(10, 14), run);
        assert_eq!(pace(10, 15), TaskPace::Stand { until: 13 * MS });
        assert_eq!(pace(12, 15), TaskPace::Stand { until: 13 * MS });
        assert_eq!(pace(13, 15), run);
        assert_eq!((ledger.most_ahead(), ledger.most_behind()), (5 * MS, 0));
    }

    #[test]
    fn what_is_missing_is_caught_up_with_a_larger_quota() {
        let mut ledger = TaskLedger::new(500 * MS);
        let mut pace = |promised, worked| ledger.set_pace(promised * MS, worked * MS, QUOTA);
        // 5 % of a core gives 25 ms in half a second; 2 + 3 are missing, so a fifth more.
        let run = |ppm| TaskPace::Run { times: Ppm::new(ppm) };
        assert_eq!(pace(10, 7), run(1_200_000));
        assert_eq!(pace(20, 21), run(1_200_000));
        assert_eq!(pace(30, 32), run(1_000_000));
        assert_eq!(pace(40, 41), run(1_000_000));
        assert_eq!(pace(200, 100), run(1_500_000));
        assert_eq!((ledger.most_ahead(), ledger.most_behind()), (2 * MS, 100 * MS));
    }

    #[test]
    fn who_holds_stands_still_unless_it_is_behind() {
        let mut ledger = TaskLedger::new(500 * MS);
        let mut hold = |promised, worked| ledger.hold_task(promised * MS, worked * MS, QUOTA);
        assert!(matches!(hold(10, 8), TaskPace::Run { .. }));
        let over = |promised| TaskPace::Stand { until: promised * MS + 5 * MS / 1000 + 1 };
        assert_eq!(hold(10, 10), over(10));
        assert_eq!(hold(10, 12), over(10));
        // It came to its checkpoint late, and ran on meanwhile.
        assert_eq!(hold(10, 20), TaskPace::Stand { until: 18 * MS });
        assert_eq!(ledger.set_pace(18 * MS, 20 * MS, QUOTA), TaskPace::Run { times: Ppm::ONE });
    }

    proptest! {
        /// However the kernel hands out a quota, as long as it doesn't stay below the quota for long, a task ends
        /// within a few slices of its time: never late, at most four slices early.
        #[test]
        fn a_paced_task_keeps_to_its_promise(
            ppm in 20_000_u32..500_000,
            errors in proptest::collection::vec(0.9_f64..1.3, 300),
            late_ms in 0_u64..100,
        ) {
            let period = 20 * MS;
            let slice = (u64::from(ppm) * period / 1_000_000).max(MS);
            let rate = |ms: u64| u64::from(ppm) * ms;
            let mut ledger = TaskLedger::new(u64::MAX);
            let (mut worked, mut pace) = (0_u64, TaskPace::Run { times: Ppm::ONE });
            for (n, error) in (0_u64..).zip(&errors) {
                let promised = rate(n * 20 + late_ms);
                if let TaskPace::Run { times } = pace {
                    worked += (rate(20) as f64 * times.as_f64() * error) as u64;
                }
                pace = ledger.set_pace(promised, worked, KernelQuota { slice, ppm });
            }
            let promised = rate((errors.len() as u64 - 1) * 20 + late_ms);
            prop_assert!(worked < promised + 6 * slice, "{} ahead", worked - promised);
            prop_assert!(worked + slice * 2 > promised, "{} behind", promised - worked);
        }
    }
}
