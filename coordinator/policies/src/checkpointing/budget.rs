//! A number of checkpoints that fits an overhead budget (Burst-HADS, III-B; cost model of its
//! artifact).

use dormouse_units::{Ppm, Span, Time};

use super::{CheckpointPlan, CheckpointPoints, Checkpointing, Quote, TaskView, When};

/// Whether the last checkpoint that a budget pays for is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastCheckpoint {
    /// The last checkpoint is taken, one interval before the task ends.
    Kept,
    /// The last checkpoint would come when the task ends, and is not taken.
    AtTheEnd,
}

/// Scheme of checkpoints that are evenly spaced over a task's work and add at most this part to its run
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverheadBudget(pub(super) Ppm, pub(super) LastCheckpoint);

impl OverheadBudget {
    /// The checkpoints of a task that takes `runtime` at full speed, each of which takes `cost`.
    pub(super) fn plan(self, runtime: Span, cost: Span) -> CheckpointPlan {
        let budget = runtime.part(self.0);
        let count = budget.as_micros().checked_div(cost.as_micros()).unwrap_or(0);
        let lost = u64::from(self.1 == LastCheckpoint::AtTheEnd);
        let count = count.saturating_sub(lost);
        CheckpointPlan {
            due: CheckpointPoints::Even(u32::try_from(count).unwrap_or(u32::MAX)),
            cost,
        }
    }
}

impl Checkpointing for OverheadBudget {
    fn next(&mut self, _: Time, task: &TaskView, _: &Quote<'_>) -> Option<When> {
        Some(When::Points(self.plan(task.runtime, task.cost).points()))
    }
}
