//! Checkpoints at regular intervals of time or of work.

use dormouse_units::{Ppm, Span, Time};

use super::{Checkpointing, Quote, TaskView, When};

/// A checkpoint whenever this much emulated time has passed since the attempt began, or since its last checkpoint was complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct EveryTime(pub(super) Span);

impl Checkpointing for EveryTime {
    fn next(&mut self, _: Time, task: &TaskView, _: &Quote<'_>) -> Option<When> {
        Some(When::At(task.since + self.0))
    }
}

/// A checkpoint whenever this much work has been done, in time at full speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EveryWork(pub(super) Span);

impl Checkpointing for EveryWork {
    fn next(&mut self, _: Time, task: &TaskView, _: &Quote<'_>) -> Option<When> {
        let points = period_multiples(self.0, task.runtime);
        Some(When::Points(points.into_iter().filter(|point| *point > task.kept).collect()))
    }
}

/// Parts of the work at which a task has done a whole number of periods; its end is not among them.
pub(super) fn period_multiples(period: Span, runtime: Span) -> Vec<Ppm> {
    if period == Span::ZERO {
        return Vec::new();
    }
    // With a million periods or more there is one in every part, which are fewer than those of a run time of centuries.
    let ones = Ppm::ONE.get();
    if runtime.as_micros() / period.as_micros() >= u64::from(ones) {
        return (1..ones).map(Ppm::new).collect();
    }
    let points = (1..).map(|k| period.times(k)).take_while(|&point| point < runtime);
    let mut points: Vec<_> = points.map(|point| point.fraction_of(runtime)).collect();
    points.dedup();
    points.retain(|point| *point > Ppm::ZERO && *point < Ppm::ONE);
    points
}

#[cfg(test)]
mod tests {
    use super::super::scheme::tests::{quote, view};
    use super::*;

    #[test]
    fn so_long_after_the_start_and_after_each() {
        let mut every = EveryTime(Span::from_secs(600));
        let at = |s| Some(When::At(Time::from_secs(s)));
        let mut next = |now, since| {
            let task = TaskView { since: Time::from_secs(since), ..view(Ppm::ZERO) };
            every.next(Time::from_secs(now), &task, &quote())
        };
        assert_eq!([next(5, 5), next(620, 620)], [at(605), at(1_220)]);
        // The answer is the same when the scheme is asked in between.
        assert_eq!(next(700, 620), at(1_220));
    }

    #[test]
    fn so_much_work_is_the_same_points_wherever_it_begins() {
        // The view's task takes 1,000 s.
        let mut every = EveryWork(Span::from_secs(300));
        let at =
            |points: &[u32]| Some(When::Points(points.iter().copied().map(Ppm::new).collect()));
        let mut next = |kept| every.next(Time::ZERO, &view(Ppm::new(kept)), &quote());
        assert_eq!(next(0), at(&[300_000, 600_000, 900_000]));
        assert_eq!(next(600_000), at(&[900_000]));
        assert_eq!(period_multiples(Span::from_secs(10), Span::from_secs(10)), []);
        assert_eq!(period_multiples(Span::ZERO, Span::from_secs(10)), []);
        // Of a log that is changed: as many points as there are parts, whatever the run time.
        let all: Vec<_> = (1..1_000_000).map(Ppm::new).collect();
        for (period, runtime) in [(7, 6_999_999), (7, 7_000_000), (7, 7_000_001), (1, u64::MAX)] {
            assert!(period_multiples(Span::from_micros(period), Span::from_micros(runtime)) == all);
        }
    }
}
