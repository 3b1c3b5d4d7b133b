//! The checkpoints that are planned for a task.

use std::sync::Arc;

use dormouse_units::{Ppm, Span};

/// Parts of the work at which checkpoints are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointPoints {
    /// This number of checkpoints, evenly spaced: the k-th of n at k / (n + 1).
    Even(u32),
    /// Checkpoints are due at these parts of the work, ascending.
    Listed(Arc<[Ppm]>),
}

/// The checkpoints of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPlan {
    /// Parts of the task's work at which the checkpoints are due.
    pub due: CheckpointPoints,
    /// Time that the task is stopped for each checkpoint.
    pub cost: Span,
}

impl CheckpointPlan {
    /// Number of checkpoints in the plan.
    #[must_use]
    pub fn count(&self) -> u32 {
        match &self.due {
            CheckpointPoints::Even(count) => *count,
            CheckpointPoints::Listed(points) => number_of_points(points),
        }
    }

    /// Parts of the work at which the checkpoints are due, ascending.
    #[must_use]
    pub fn points(&self) -> Vec<Ppm> {
        match &self.due {
            CheckpointPoints::Even(count) => {
                let parts = u64::from(*count) + 1;
                let due = |k| u32::try_from(u64::from(k) * 1_000_000 / parts).unwrap_or(1_000_000);
                (1..=*count).map(|k| Ppm::new(due(k))).collect()
            }
            CheckpointPoints::Listed(points) => points.to_vec(),
        }
    }

    /// Number of checkpoints that are still due after `done` of the work.
    #[must_use]
    pub fn left_after(&self, done: Ppm) -> u32 {
        match &self.due {
            CheckpointPoints::Even(count) => {
                // due(k) > done from the k on with k * 10^6 >= (done + 1) * (count + 1).
                let parts = u64::from(*count) + 1;
                let first = ((u64::from(done.get()) + 1) * parts).div_ceil(1_000_000).max(1);
                u32::try_from(parts.saturating_sub(first)).unwrap_or(*count)
            }
            CheckpointPoints::Listed(points) => {
                number_of_points(&points[points.partition_point(|due| *due <= done)..])
            }
        }
    }
}

fn number_of_points(points: &[Ppm]) -> u32 {
    u32::try_from(points.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_come_one_after_the_other() {
        let cost = Span::from_secs(13);
        let even = CheckpointPlan { due: CheckpointPoints::Even(2), cost };
        assert_eq!(even.points(), [333_333, 666_666].map(Ppm::new));
        let listed = CheckpointPlan { due: CheckpointPoints::Listed(even.points().into()), cost };
        for plan in [&even, &listed] {
            let left =
                [0, 333_332, 333_333, 666_665, 666_666].map(|d| plan.left_after(Ppm::new(d)));
            assert_eq!((plan.count(), left), (2, [2, 2, 1, 1, 0]));
        }
        assert_eq!(CheckpointPlan { due: CheckpointPoints::Even(0), cost }.points(), []);
    }
}
