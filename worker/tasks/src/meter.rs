//! Meter of a task: counts its work and CPU time, and decides when it ends.

use std::fmt;
use std::time::Duration;

use crate::progress::{Progress, ProgressWriter, State};

/// Multiple of the usual CPU time of a piece of work up to which the clock's advance during the work is believed.
const BELIEVED_FACTOR: f64 = 50.0;
/// Time, in addition to `BELIEVED_FACTOR` times the usual CPU time, up to which the clock's advance is believed; covers page faults
/// and the first units of a new phase.
const BELIEVED_EXTRA: Duration = Duration::from_millis(20);

/// The amount of work after which a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkAmount {
    Repetitions(u64),
    CpuTime(Duration),
}

/// Signal to stop: the CPU time is used up and the required work is done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EnoughWork;

/// The goal at which a task's run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunGoal {
    /// Units of work that must be done however long they take: all units if there is no CPU time goal, else the first repetition.
    pub(crate) due: u64,
    /// CPU time after which the run ends, once `due` units are done; `None`: the run ends with the last due unit.
    pub(crate) cpu_time: Option<Duration>,
}

/// Counts units of work and the CPU time they take, and publishes both.
///
/// A unit is a small piece of work, at most about a millisecond; each program defines its own units. The CPU time is
/// the sum of the clock's steps between units, so it survives a restore in another process, whose clock starts again: a
/// step backwards, or a step that is far too large for the work done, is replaced by the average time of such work.
pub(crate) struct WorkMeter {
    clock: Box<dyn FnMut() -> Duration>,
    last: Duration,
    goal: RunGoal,
    spent: Duration,
    units: u64,
    beats: u64,
    page: Option<ProgressWriter>,
}

impl WorkMeter {
    /// Makes a meter that counts units of work and CPU time from now on.
    pub(crate) fn start(
        mut clock: Box<dyn FnMut() -> Duration>,
        goal: RunGoal,
        page: Option<ProgressWriter>,
    ) -> Self {
        let last = own_time(clock(), page.as_ref());
        let mut meter = Self { clock, last, goal, spent: Duration::ZERO, units: 0, beats: 0, page };
        meter.publish_progress(State::Running);
        meter
    }

    /// Makes a meter that reports counts that other processes made.
    pub(crate) fn with_counts(
        spent: Duration,
        units: u64,
        beats: u64,
        page: Option<ProgressWriter>,
    ) -> Self {
        let goal = RunGoal { due: units, cpu_time: None };
        let clock = Box::new(|| Duration::ZERO);
        Self { clock, last: Duration::ZERO, goal, spent, units, beats, page }
    }

    /// Records that `units` more units are done.
    ///
    /// # Errors
    ///
    /// [`EnoughWork`] when the CPU time is used up and the units that must be done are done.
    pub(crate) fn count_work(&mut self, units: u64) -> Result<(), EnoughWork> {
        self.work_keeping(units, 0)
    }

    /// Like [`count_work`](Self::count_work), but reserves CPU time for `kept` further units that must follow.
    pub(crate) fn work_keeping(&mut self, units: u64, kept: u64) -> Result<(), EnoughWork> {
        let was_due = self.units < self.goal.due;
        self.count_only(units);
        if !was_due && self.is_spent(kept) { Err(EnoughWork) } else { Ok(()) }
    }

    /// Records that `units` more units are done, without ending the run.
    pub(crate) fn count_only(&mut self, units: u64) {
        self.count(units);
        self.publish_progress(State::Running);
    }

    /// Returns whether the run's goal is reached.
    pub(crate) fn is_enough(&self) -> bool {
        self.units >= self.goal.due && self.is_spent(0)
    }

    /// Publishes on the progress page that the run has ended.
    pub(crate) fn publish_end(&mut self, state: State) {
        self.publish_progress(state);
    }

    /// Returns the CPU time that the work has taken so far.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Returns the number of units of work done so far.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    fn count(&mut self, units: u64) {
        let now = own_time((self.clock)(), self.page.as_ref());
        let usual = self.mean().mul_f64(units as f64);
        let believed = usual.mul_f64(BELIEVED_FACTOR) + BELIEVED_EXTRA;
        let step = match now.checked_sub(self.last) {
            Some(step) if self.units == 0 || step <= believed => step,
            _ => usual,
        };
        self.last = now;
        self.spent += step;
        self.units += units;
    }

    /// Returns the mean CPU time of a unit of work so far.
    pub(crate) fn mean(&self) -> Duration {
        if self.units == 0 { Duration::ZERO } else { self.spent.div_f64(self.units as f64) }
    }

    fn is_spent(&self, kept: u64) -> bool {
        self.goal
            .cpu_time
            .is_none_or(|target| self.spent + self.mean().mul_f64(kept as f64) >= target)
    }

    fn fraction(&self) -> f64 {
        let due = self.units as f64 / self.goal.due.max(1) as f64;
        self.goal.cpu_time.map_or(due, |t| due.min(self.spent.as_secs_f64() / t.as_secs_f64()))
    }

    fn publish_progress(&mut self, state: State) {
        self.beats += 1;
        let Some(page) = &self.page else { return };
        let ppm = match state {
            State::Done | State::Failed => Progress::COMPLETE,
            _ => ((self.fraction() * 1e6) as u64).min(Progress::COMPLETE - 1),
        };
        page.write(&Progress {
            state,
            ppm,
            cpu: self.spent,
            units: self.units,
            heartbeat: self.beats,
        });
    }
}

/// Returns the part of the thread's CPU time that belongs to the task.
fn own_time(thread: Duration, page: Option<&ProgressWriter>) -> Duration {
    let foreign = page.map_or(0, ProgressWriter::foreign_ns);
    let ns = i128::try_from(thread.as_nanos()).unwrap_or(i128::MAX) - i128::from(foreign);
    Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
}

impl fmt::Debug for WorkMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("goal", &self.goal)
            .field("spent", &self.spent)
            .field("units", &self.units)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl WorkMeter {
    /// Makes a meter for tests of kernels: it has no clock and no page, and never ends the run.
    pub(crate) fn unlimited() -> Self {
        Self::start(Box::new(|| Duration::ZERO), RunGoal { due: u64::MAX, cpu_time: None }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A clock that reads out the given milliseconds, one after the other.
    fn readings(
        ms: impl IntoIterator<Item = u32, IntoIter: 'static>,
    ) -> Box<dyn FnMut() -> Duration> {
        let mut ms = ms.into_iter();
        Box::new(move || MS * ms.next().expect("the test gives enough readings"))
    }

    fn meter(ms: impl IntoIterator<Item = u32, IntoIter: 'static>, goal: RunGoal) -> WorkMeter {
        WorkMeter::start(readings(ms), goal, None)
    }

    const ALL: RunGoal = RunGoal { due: u64::MAX, cpu_time: None };

    #[test]
    fn adds_up_the_steps_of_the_clock() {
        let mut m = meter([5, 6, 8, 9], ALL);
        for _ in 0..3 {
            assert_eq!(m.count_work(1), Ok(()));
        }
        assert_eq!((m.spent(), m.units()), (4 * MS, 3));
    }

    #[test]
    fn a_restore_costs_the_mean_unit_and_not_the_clock_of_another_process() {
        // Two units of 2 ms, a restore into a process that has 1 ms, two more units.
        let mut m = meter([100, 102, 104, 1, 3, 5], ALL);
        for _ in 0..5 {
            assert_eq!(m.count_work(1), Ok(()));
        }
        assert_eq!(m.spent(), 10 * MS);
        // The mean is per unit: a call for three units counts three times.
        let mut m = meter([100, 102, 104, 0], ALL);
        assert_eq!((m.count_work(1), m.count_work(1), m.count_work(3)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(m.spent(), 10 * MS);
    }

    #[test]
    fn a_restore_into_a_process_that_was_busy_does_not_count_its_time() {
        // The restorer used 900 ms before it became this program, which had used 4.
        let mut m = meter([0, 2, 4, 900, 902], ALL);
        for _ in 0..4 {
            assert_eq!(m.count_work(1), Ok(()));
        }
        assert_eq!(m.spent(), 8 * MS);
    }

    #[test]
    fn many_restores_in_a_row_keep_the_count() {
        // Every fourth unit ends in a new process.
        let steps = (0..=400).map(|unit| if unit % 4 == 0 { 1 } else { 1 + 2 * (unit % 4) });
        let mut m = meter(steps, ALL);
        for _ in 0..400 {
            assert_eq!(m.count_work(1), Ok(()));
        }
        assert_eq!(m.spent(), 800 * MS);
    }

    #[test]
    fn what_others_used_of_the_thread_is_not_the_tasks() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("progress");
        let page = ProgressWriter::create(&path).expect("a page");
        let set = |ms: i64| {
            let clock = crate::progress::Clock { own: 0, foreign: ms * 1_000_000 };
            crate::progress::set_clock(&path, clock).expect("written");
        };
        // Units of 2 ms; 5 ms of somebody else's in the third; then another thread, at 1 ms.
        let mut m = WorkMeter::start(readings([0, 2, 4, 11, 3, 5]), ALL, Some(page));
        assert_eq!((m.count_work(1), m.count_work(1)), (Ok(()), Ok(())));
        set(5);
        assert_eq!(m.count_work(1), Ok(()));
        assert_eq!(m.spent(), 6 * MS);
        // 6 ms were its own, and the new thread has had 1.
        set(1 - 6);
        assert_eq!((m.count_work(1), m.count_work(1)), (Ok(()), Ok(())));
        assert_eq!(m.spent(), 10 * MS);
    }

    #[test]
    fn stops_at_the_cpu_time_but_never_before_the_due_work() {
        let goal = RunGoal { due: 3, cpu_time: Some(5 * MS) };
        // 4 ms a unit: the time is spent after two, the third was due, the fourth is enough.
        let mut m = meter([0, 4, 8, 12, 16], goal);
        assert_eq!((m.count_work(1), m.count_work(1), m.count_work(1)), (Ok(()), Ok(()), Ok(())));
        assert!(m.is_enough());
        assert_eq!(m.count_work(1), Err(EnoughWork));
        // 1 ms a unit: goes on after the due work until 5 ms are spent.
        let mut m = meter([0, 1, 2, 3, 4, 5], goal);
        for _ in 0..4 {
            assert_eq!(m.count_work(1), Ok(()));
            assert!(!m.is_enough());
        }
        assert_eq!(m.count_work(1), Err(EnoughWork));
    }

    #[test]
    fn keeps_time_for_what_must_follow() {
        let mut m = meter([0, 1, 2, 3], RunGoal { due: 1, cpu_time: Some(5 * MS) });
        assert_eq!((m.count_work(1), m.work_keeping(1, 2)), (Ok(()), Ok(())));
        assert_eq!(m.work_keeping(1, 2), Err(EnoughWork));
    }

    #[test]
    fn the_published_fraction_is_of_time_or_of_due_work_whichever_is_behind() {
        let cpu_time = Some(10 * MS);
        let mut m = meter([0, 1], RunGoal { due: 4, cpu_time });
        assert_eq!(m.count_work(1), Ok(()));
        assert!((m.fraction() - 0.1).abs() < 1e-12, "time is behind: {m:?}");
        let mut m = meter([0, 8], RunGoal { due: 4, cpu_time });
        assert_eq!(m.count_work(1), Ok(()));
        assert!((m.fraction() - 0.25).abs() < 1e-12, "work is behind: {m:?}");
        let mut m = meter([0, 8], RunGoal { due: 4, cpu_time: None });
        assert_eq!(m.count_work(2), Ok(()));
        assert!((m.fraction() - 0.5).abs() < 1e-12, "no time given: {m:?}");
    }
}
