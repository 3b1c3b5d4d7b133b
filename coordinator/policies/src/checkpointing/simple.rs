//! The simple schemes: no checkpoints, checkpoints at listed points of the work, and those of another
//! scheme on spot VMs only.

use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_units::{Ppm, Time};

use super::{Checkpointing, Quote, TaskView, When};

/// Takes no checkpoints: tasks start from scratch after each interruption.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoCheckpoints;

impl Checkpointing for NoCheckpoints {
    fn next(&mut self, _: Time, _: &TaskView, _: &Quote<'_>) -> Option<When> {
        None
    }
}

/// Checkpoints every task at the same points of its work, ascending.
#[derive(Clone, Debug)]
pub(super) struct ListedPoints(pub(super) Arc<[Ppm]>);

impl Checkpointing for ListedPoints {
    fn next(&mut self, _: Time, task: &TaskView, _: &Quote<'_>) -> Option<When> {
        let ahead = self.0.iter().copied().filter(|point| *point > task.kept);
        Some(When::Points(ahead.collect()))
    }
}

/// Applies another scheme to tasks on spot VMs only; tasks on other VMs take no checkpoints.
#[derive(Debug)]
pub(super) struct SpotOnly(pub(super) Box<dyn Checkpointing>);

impl Checkpointing for SpotOnly {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        match quote.market {
            Market::Spot => self.0.next(now, task, quote),
            Market::OnDemand => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheme::tests::{quote, view};
    use super::*;

    #[test]
    fn only_those_ahead_are_asked_for() {
        let mut points = ListedPoints([100_000, 500_000, 900_000].map(Ppm::new).into());
        let mut next = |kept| points.next(Time::ZERO, &view(Ppm::new(kept)), &quote());
        let at =
            |points: &[u32]| Some(When::Points(points.iter().copied().map(Ppm::new).collect()));
        assert_eq!(next(0), at(&[100_000, 500_000, 900_000]));
        assert_eq!(next(500_000), at(&[900_000]));
        assert_eq!(next(950_000), at(&[]));
    }
}
