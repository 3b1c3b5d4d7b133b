//! A number of checkpoints that fits an overhead budget (Burst-HADS, III-B; cost model of its
//! artifact).

use dormouse_units::{Ppm, Span, Time};

use super::{CheckpointPlan, Checkpointing, Due, Quote, TaskView, When};

/// Checkpoints evenly spaced over a task's work, that add at most this part to its run time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(pub(super) Ppm);

impl Budget {
    /// The checkpoints of a task that takes `runtime` at full speed, each of which takes `cost`.
    pub(super) fn plan(self, runtime: Span, cost: Span) -> CheckpointPlan {
        let budget = runtime.part(self.0);
        let count = budget.as_micros().checked_div(cost.as_micros()).unwrap_or(0);
        CheckpointPlan { due: Due::Even(u32::try_from(count).unwrap_or(u32::MAX)), cost }
    }
}

impl Checkpointing for Budget {
    fn next(&mut self, _: Time, task: &TaskView, _: &Quote<'_>) -> Option<When> {
        Some(When::Points(self.plan(task.runtime, task.cost).points()))
    }
}
