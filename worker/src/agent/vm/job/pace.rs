//! Keeps every job at the pace that vCPUs of exactly the right speed would give the job.
//!
//! A process that is behind gets a quota a little larger for a while, one that is ahead a smaller one. CPU time that
//! the foreground lacks is given to the foreground, and time that the background lacks to the background, even while
//! its foreground computes: each of them then has a quota of its own, below that of their processor.

use std::{collections::BTreeMap, time::Duration};

use dormouse_units::{Credits, Speedup, Time};
use dormouse_vm::CreditSpec;
use dormouse_vm::ideal::{self, MachineChange};

use tokio::time::Instant;

use crate::agent::{report::Key, vm::CommandStamp};

/// Period of a vCPU's CPU quota, in microseconds, or the shortest one that its share allows.
///
/// A process that wakes alone on its vCPU has the quota of a whole period at once, and waits for the next period if
/// its neighbour has used up this one: the longer a period, the more the speed of a vCPU differs from its share, and
/// the more the foreground loses.
pub(crate) const PERIOD_US: u64 = 5_000;

/// Time within which the worker makes up for a job's lag behind the model of the VM that the job is compared with.
const WITHIN: Duration = Duration::from_millis(100);

/// Number of steps into which a processor's quota is divided. Quotas change by whole steps only: each change grants a fresh slice,
/// and smaller lags are normal, as the kernel grants a quota in slices.
const STEPS: i64 = 8;

/// Largest addition to a processor's quota, in steps of `1 / STEPS` of it; hosts keep a reserve of CPU time for it.
const MAX_STEPS: i64 = 4;
/// Largest reduction of a processor's quota, in steps: the kernel has no quota of zero.
const MIN_STEPS: i64 = -7;

/// Time by which a job is kept ahead of the model that it is compared with, as a job's end takes that long to be reported.
const EARLY: Duration = Duration::from_millis(8);

/// Longest time before its due time at which an ended job's end is reported; before that commands may still change the due time.
const FORESEEN: Duration = Duration::from_millis(60);
/// Time in the future beyond which a job's end counts as not foreseeable.
const FAR: Duration = Duration::from_secs(86_400);

/// CPU time, in nanoseconds, that a process still needs to exit when it has done its work.
const END_NS: i64 = 3_000_000;

/// Lag of the foreground and the background process on a vCPU behind the model of the VM, in nanoseconds of CPU time; `None`: there
/// is no such process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwedTime {
    pub(crate) foreground: Option<i64>,
    pub(crate) background: Option<i64>,
}

/// Quotas of a vCPU and, if they have their own, of its tiers, in millionths of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VcpuQuotas {
    pub(crate) vcpu: u32,
    pub(crate) foreground: Option<u32>,
    pub(crate) background: Option<u32>,
}

impl VcpuQuotas {
    /// Returns the quotas that make up for the lag `owed`.
    pub(crate) fn paying_quotas(owed: OwedTime, core_ppm: u32) -> Self {
        let step_ns = i64::try_from(WITHIN.as_nanos()).unwrap_or(i64::MAX) / 1_000_000
            * i64::from(core_ppm)
            / STEPS;
        let steps =
            |owed: Option<i64>| (owed.unwrap_or(0) / step_ns.max(1)).clamp(MIN_STEPS, MAX_STEPS);
        let ppm = |steps: i64| {
            u32::try_from(i64::from(core_ppm) * (STEPS + steps) / STEPS).unwrap_or(core_ppm)
        };
        let (above, below) = (steps(owed.foreground), steps(owed.background));
        let vcpu = ppm(above.max(0) + below.max(0)).min(1_000_000.max(core_ppm));
        Self {
            vcpu,
            foreground: (above < 0 || below > 0).then(|| ppm(above).min(vcpu)),
            background: (below < 0).then(|| ppm(below)),
        }
    }
}

/// Time at which a job that has ended on the host should have ended by the model of its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueTime {
    /// The due time on the run's clock, in emulated microseconds.
    pub(crate) at_us: u64,
    /// Real microseconds from the due time to now. A negative value is how much of the job's work was still to be done, which takes
    /// longer with a foreground job in the way.
    pub(crate) late_us: i64,
    /// True if the job's end is to be reported now.
    pub(crate) is_near: bool,
}

/// Longest delay of a command at which the model that jobs are compared with stays exact: the model's state of longer ago is final.
const LAG: Duration = Duration::from_secs(1);

/// Model of a VM that the VM's real parallel jobs are compared with, an [`ideal::IdealMachine`]. The model's time is the real time
/// since the start of the run's clock, without freezes of the VM; commands carry the time of their decision on the run's clock.
#[derive(Debug)]
pub(crate) struct JobPace {
    speedup: Speedup,
    /// Real time at which the run's clock was at zero, estimated from the fastest commands; `None` before the first command.
    zero: Option<Instant>,
    /// Time for which the VM has been frozen so far, in which its model makes no progress.
    skipped: Duration,
    frozen: Option<Duration>,
    /// Speed of the VM's vCPUs that was last reported, in ppm of full speed.
    pub(crate) told_ppm: u32,
    /// Next time at which all jobs are compared with the VM's model.
    pub(crate) pay_at: Instant,
    pub(crate) count_at: Instant,
    /// Model of the VM as of [`LAG`] ago, which no late command can change any more.
    settled: ideal::IdealMachine<Key>,
    /// Changes of jobs and the VM since the time of the model's state `settled`, by their time on the model's clock and then by
    /// order of arrival.
    pending: BTreeMap<(Duration, u64), MachineChange<Key>>,
    changes: u64,
    /// Model of the VM as of now: `settled` with the pending changes.
    pub(crate) ideal: ideal::IdealMachine<Key>,
}

impl JobPace {
    /// Makes the model with which a new VM's parallel jobs are compared; `credits` is given for a burstable VM.
    #[must_use]
    pub(crate) fn new(speedup: Speedup, credits: Option<CreditSpec>) -> Self {
        let machine = ideal::IdealMachine::with_credits(credits, speedup);
        Self {
            speedup,
            zero: None,
            skipped: Duration::ZERO,
            frozen: None,
            told_ppm: machine.speed_ppm(),
            pay_at: Instant::now(),
            count_at: Instant::now(),
            settled: machine.clone(),
            pending: BTreeMap::new(),
            changes: 0,
            ideal: machine,
        }
    }

    /// Begins the model that parallel jobs are compared with when the VM is created, with the VM's first credits.
    pub(crate) fn begin_pace(&mut self, asked: &CommandStamp) {
        let at = self.decided_time(asked);
        self.apply_change(at, MachineChange::Made);
    }

    /// Returns the share of a core that a vCPU gets at the VM's current speed, in ppm; `core_ppm` is the share at full speed.
    pub(crate) fn core_ppm(&self, core_ppm: u32) -> u32 {
        let ppm = u64::from(core_ppm) * u64::from(self.ideal.speed_ppm()) / 1_000_000;
        u32::try_from(ppm).unwrap_or(core_ppm).max(1)
    }

    /// Returns the credits in the VM's model at the model's present time, and that time on the run's clock; `None`: the VM isn't
    /// burstable.
    #[must_use]
    pub(crate) fn credits_now(&self) -> Option<(Credits, Time)> {
        let (balance, _) = self.ideal.credits()?;
        Some((balance, self.on_run_s_clock(self.ideal.now())))
    }

    /// Returns whether the VM is throttled because its credits have run out.
    pub(crate) fn is_throttled(&self) -> bool {
        self.ideal.credits().is_some_and(|(_, throttled)| throttled)
    }

    fn on_run_s_clock(&self, at: Duration) -> Time {
        Time::ZERO + self.speedup.to_emulated(at + self.skipped)
    }

    /// Returns the time at which a command was decided, on the clock of the VM's model: the command's own time, or, if it has none,
    /// the time of its arrival.
    pub(crate) fn decided_time(&mut self, asked: &CommandStamp) -> Duration {
        let at = self.of_run(asked);
        self.without_freezes(at)
    }

    /// Returns `now` as a time of the VM's model, and as a time on the run's clock from which a receiver computes exactly the
    /// first. A difference of a nanosecond could decide whether a job is behind by a whole phase.
    pub(crate) fn both_times(&mut self, now: Instant) -> (Duration, Time) {
        let since_zero = now.saturating_duration_since(*self.zero.get_or_insert(now));
        let shown = self.speedup.to_emulated(since_zero);
        let at = self.speedup.to_real(shown);
        (self.without_freezes(at), Time::ZERO + shown)
    }

    /// Returns the real time from the start of the run's clock until a command was decided.
    fn of_run(&mut self, asked: &CommandStamp) -> Duration {
        let came = asked.decided_at();
        let Some(at) = asked.at else {
            return came.saturating_duration_since(*self.zero.get_or_insert(came));
        };
        let at = self.speedup.to_real(at.since(Time::ZERO));
        let zero = came.checked_sub(at).unwrap_or(came);
        self.zero = Some(self.zero.map_or(zero, |known| known.min(zero)));
        at
    }

    fn without_freezes(&self, at: Duration) -> Duration {
        self.frozen.map_or(at, |since| since.min(at)).saturating_sub(self.skipped)
    }

    fn reference_time(&mut self, now: Instant) -> Duration {
        let at = now.saturating_duration_since(*self.zero.get_or_insert(now));
        self.without_freezes(at)
    }

    /// Stops the clock of the model that jobs are compared with, because the VM freezes.
    pub(crate) fn freeze_pace(&mut self, asked: &CommandStamp) {
        let at = self.of_run(asked);
        self.frozen.get_or_insert(at);
    }

    /// Lets the clock of the model that jobs are compared with run again, because the VM thaws.
    pub(crate) fn thaw_pace(&mut self, asked: &CommandStamp) {
        let at = self.of_run(asked);
        if let Some(since) = self.frozen.take() {
            self.skipped += at.saturating_sub(since);
        }
    }

    /// Queues a change of a job or the VM, for the time `at` of the model that jobs are compared with.
    pub(crate) fn apply_change(&mut self, at: Duration, change: MachineChange<Key>) {
        let settled = self.settled.now();
        if at < settled {
            let late = settled.saturating_sub(at);
            tracing::warn!(?late, "a command came too late for the reference clock of the VM");
        }
        tracing::trace!(?at, ?change, "the reference hears");
        self.changes += 1;
        self.pending.insert((at, self.changes), change);
    }

    /// Advances the model that jobs are compared with to `now`. Forgets the jobs that are finished in the model and, as `is_gone`
    /// tells, in reality too.
    pub(crate) fn advance_to(&mut self, now: Instant, is_gone: impl Fn(Key) -> bool) {
        let now = self.reference_time(now);
        let settled = now.saturating_sub(LAG);
        while let Some(first) = self.pending.first_entry().filter(|first| first.key().0 <= settled)
        {
            let ((at, _), change) = first.remove_entry();
            self.settled.advance_to(at);
            self.settled.apply_change(change);
        }
        self.settled.advance_to(settled);
        // Who ended within the time that is not final yet may still be on a move there.
        let pending = &self.pending;
        let is_awaited = |key| pending.values().any(|change| change.key() == Some(key));
        self.settled.forget_gone(|key| is_gone(key) && !is_awaited(key));
        self.ideal = self.settled.clone();
        for ((at, _), change) in self.pending.range(..=(now, u64::MAX)) {
            self.ideal.advance_to(*at);
            self.ideal.apply_change(change.clone());
        }
        self.ideal.advance_to(now);
    }

    /// Returns for how much longer a job must be stopped for its checkpoint. The VM's model must have been advanced to `now`.
    pub(crate) fn held_for(&mut self, key: Key, now: Instant) -> Duration {
        let now = self.reference_time(now);
        self.ideal.held_until(key).map_or(Duration::ZERO, |until| until.saturating_sub(now))
    }

    /// Returns the time at which a job that has ended on the host should have ended by the model of its VM; `None`: unknown.
    pub(crate) fn due_time(&mut self, key: Key, now: Instant) -> Option<DueTime> {
        self.advance_to(now, |_| false);
        let now = self.reference_time(now);
        let mut machine = self.ideal.clone();
        machine.advance_to_end(key, machine.now() + FAR);
        let at = machine.ended_at(key)?;
        let early = at.saturating_sub(now);
        let ahead = self.ideal.left_alone(key).unwrap_or_default().min(early);
        let us = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Some(DueTime {
            at_us: self.on_run_s_clock(at).as_micros(),
            late_us: us(now.saturating_sub(at)) - us(ahead),
            is_near: early <= FORESEEN,
        })
    }

    /// Returns the CPU time, in nanoseconds, that a process of a job needs to be slightly ahead of the VM's model, or to exit once
    /// the job is finished in the model; `behind_ns` is the process's lag.
    pub(crate) fn early_payment(&self, key: Key, behind_ns: i64, core_ppm: u32) -> i64 {
        let early_ns = i64::try_from(EARLY.as_nanos()).unwrap_or(0) / 1_000_000;
        // It is still there: whatever is counted, it has something left to do.
        if self.ideal.ended_at(key).is_some() {
            return behind_ns.max(0) + END_NS;
        }
        behind_ns + early_ns * i64::from(core_ppm)
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Attempt, Ppm, TaskId};

    use super::*;

    #[test]
    fn each_tier_gets_what_it_is_owed_and_nothing_of_the_other_s() {
        let quotas = |foreground, background| {
            let ms = |ms: Option<i64>| ms.map(|ms| ms * 1_000_000);
            let owed = OwedTime { foreground: ms(foreground), background: ms(background) };
            let it = VcpuQuotas::paying_quotas(owed, 160_000);
            (it.vcpu / 1000, it.foreground.map(|p| p / 1000), it.background.map(|p| p / 1000))
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
        let all = OwedTime { foreground: Some(i64::MAX), background: Some(i64::MAX) };
        assert_eq!(
            VcpuQuotas::paying_quotas(all, 1_000_000).vcpu,
            1_000_000,
            "a core is all there is"
        );
    }

    #[test]
    fn what_was_over_a_little_early_is_due_when_its_foreground_lets_it_be() {
        let begun = CommandStamp::stamp_now();
        let base = begun.came;
        let at = |ms| base + Duration::from_millis(ms);
        let program = |ms| ideal::JobProgram {
            runtime: Duration::from_millis(ms),
            phases: 1,
            usage: vec![1_000_000],
        };
        let key = |job| (TaskId::new(job), Attempt::new(1));
        let [below, above] = [1, 2].map(key);
        let start = |key, ms| {
            let (program, on) = (program(ms), vec![0]);
            MachineChange::Start { key, program, on, foreground: key == above }
        };
        let mut pace = JobPace::new(Speedup::times_real(10), None);
        let zero = pace.decided_time(&begun);
        pace.apply_change(zero, start(below, 1000));
        pace.apply_change(Duration::from_millis(990), start(above, 5000));
        // 10 ms are left of it, and nearly 5 s of what is in its way.
        let due = pace.due_time(below, at(995)).expect("it will be through");
        assert_eq!(due, DueTime { at_us: 60_000_000, late_us: -10_000, is_near: false });
        assert!(pace.due_time(below, at(5945)).is_some_and(|due| due.is_near));
        // What is in its way is killed.
        let mut pace = JobPace::new(Speedup::times_real(10), None);
        let zero = pace.decided_time(&begun);
        pace.apply_change(zero, start(below, 1000));
        pace.apply_change(Duration::from_millis(990), start(above, 5000));
        pace.apply_change(Duration::from_millis(1200), MachineChange::Kill(above));
        let due = pace.due_time(below, at(1203)).expect("it will be through");
        assert_eq!(due, DueTime { at_us: 12_100_000, late_us: -7_000, is_near: true });
        let due = pace.due_time(below, at(1230)).expect("it is through");
        assert_eq!(due, DueTime { at_us: 12_100_000, late_us: 20_000, is_near: true });
        assert_eq!(pace.due_time(key(3), at(1230)), None);
    }

    #[test]
    fn credits_stand_still_with_their_vm_and_slow_down_what_runs() {
        let base = Instant::now();
        let asked = |s: u64| {
            CommandStamp::undelayed_at(base + Duration::from_millis(s * 100), Time::from_secs(s))
        };
        let second = |n: u64| Credits::from_vcpu_micros(n * 1_000_000);
        let spec = CreditSpec {
            baseline: Ppm::new(200_000),
            earned_per_hour: Credits::ZERO,
            initial: second(10),
            cap: second(10),
        };
        let key = (TaskId::new(1), Attempt::new(1));
        let mut pace = JobPace::new(Speedup::times_real(10), Some(spec));
        pace.begin_pace(&asked(5));
        let begun = pace.decided_time(&asked(10));
        let program = ideal::JobProgram {
            runtime: Duration::from_secs(2),
            phases: 1,
            usage: vec![1_000_000],
        };
        pace.apply_change(
            begun,
            MachineChange::Start { key, program, on: vec![0], foreground: true },
        );
        pace.freeze_pace(&asked(16));
        pace.advance_to(base + Duration::from_secs(4), |_| false);
        assert_eq!(
            (pace.credits_now(), pace.core_ppm(1_000)),
            (Some((second(4), Time::from_secs(16))), 1_000)
        );
        pace.thaw_pace(&asked(50));
        // 6 s of it are done, 4 more are in bursts, and 10 take 50.
        let due = pace.due_time(key, base + Duration::from_secs(5)).expect("it will be through");
        assert_eq!(due.at_us, 104_000_000);
        assert!(!pace.is_throttled());
        pace.advance_to(base + Duration::from_secs(6), |_| false);
        assert_eq!(pace.credits_now(), Some((Credits::ZERO, Time::from_secs(60))));
        assert!(pace.is_throttled());
        assert_eq!(pace.core_ppm(1_000), 200);
    }

    /// The neighbours of a job are promised only the CPU time that the job leaves them, until its work is done.
    #[test]
    fn who_ends_soon_after_a_move_is_in_the_way_of_others_until_then() {
        let begun = CommandStamp::stamp_now();
        let at = |ms| begun.came + Duration::from_millis(ms);
        let real = Duration::from_millis;
        let key = |job| (TaskId::new(job), Attempt::new(1));
        let [moved, below] = [1, 2].map(key);
        let start = |key, ms, on: u32, foreground| {
            let (runtime, phases, usage) = (real(ms), 1, vec![1_000_000]);
            let program = ideal::JobProgram { runtime, phases, usage };
            MachineChange::Start { key, program, on: vec![on], foreground }
        };
        let mut pace = JobPace::new(Speedup::ONE, None);
        let zero = pace.decided_time(&begun);
        pace.apply_change(zero, start(moved, 1_500, 0, false));
        pace.apply_change(zero, start(below, 1_200, 1, false));
        pace.apply_change(real(900), MachineChange::Stand(moved));
        pace.apply_change(
            real(1_000),
            MachineChange::GoOn { key: moved, on: vec![1], anew: false },
        );
        // It was reported at 1.6 s, and is gone by the time at which that of its move is final.
        for ms in [1_590, 1_950, 2_700] {
            pace.advance_to(at(ms), |key| key == moved && ms > 1_600);
        }
        let due = pace.due_time(below, at(2_700)).expect("it is through");
        assert_eq!(due.at_us, 1_800_000);
    }

    #[test]
    fn who_is_told_when_something_happened_comes_to_the_same_time() {
        for us in [1_000_000, 10_000_000, 59_999_999, 1_000_000_007] {
            let speedup = Speedup::from_emulated_us_per_second(us).expect("it is not zero");
            let mut pace = JobPace::new(speedup, None);
            let zero = Instant::now();
            assert_eq!(pace.both_times(zero), (Duration::ZERO, Time::ZERO));
            for ns in [1, 999, 16_667, 123_456_789, 98_765_432_101] {
                let (at, told) = pace.both_times(zero + Duration::from_nanos(ns));
                assert_eq!(at, speedup.to_real(told.since(Time::ZERO)));
                let real = Duration::from_nanos(ns);
                let least = Duration::from_nanos(1_000_000_000 / us + 1);
                assert!(at <= real && real - at <= least + Duration::from_nanos(1), "{at:?}");
            }
        }
    }

    #[test]
    fn the_reference_stands_still_with_its_vm() {
        let base = Instant::now();
        // At speed-up 10, the run's clock showing zero at the base.
        let asked = |s: u64| {
            let came = base + Duration::from_millis(s * 100);
            CommandStamp::undelayed_at(came, Time::from_secs(s))
        };
        let key = (TaskId::new(1), Attempt::new(1));
        let mut pace = JobPace::new(Speedup::times_real(10), None);
        let begun = pace.decided_time(&asked(10));
        let program = ideal::JobProgram {
            runtime: Duration::from_secs(2),
            phases: 1,
            usage: vec![1_000_000],
        };
        pace.apply_change(
            begun,
            MachineChange::Start { key, program, on: vec![0], foreground: true },
        );
        pace.freeze_pace(&asked(20));
        pace.advance_to(base + Duration::from_secs(4), |_| false);
        assert_eq!(pace.ideal.work_done(key), [Duration::from_secs(1)]);
        pace.thaw_pace(&asked(50));
        // A second is left of it, which begins at 5 s.
        let due =
            pace.due_time(key, base + Duration::from_millis(5_500)).expect("it will be through");
        assert_eq!((due.at_us, due.late_us), (60_000_000, -500_000));
        assert_eq!(pace.decided_time(&asked(60)), Duration::from_secs(3));
    }
}
