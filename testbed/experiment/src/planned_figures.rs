//! Figures of a plan, to compare with its run.

use dormouse_policies::{Plan, planned_bill};
use dormouse_units::{Money, Span};

use super::Experiment;

/// Figures of the plan of a bag, to compare with those of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFigures {
    /// Planned end of the last task, boot included.
    pub makespan: Span,
    /// Cost of a run that goes as planned, by the provider's tariff.
    pub bill: Money,
    /// Number of tasks in the plan.
    pub tasks: usize,
    /// Number of tasks in the bag.
    pub of: usize,
}

impl PlannedFigures {
    /// Whether all tasks are in the plan. Tasks of a workflow that follow others are not.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.tasks == self.of
    }
}

impl Experiment {
    /// Figures of a plan of this experiment's bag; `None` if it has no bag.
    #[must_use]
    pub fn planned_figures(&self, plan: &Plan) -> Option<PlannedFigures> {
        let config = self.scheduler.as_ref()?;
        Some(PlannedFigures {
            makespan: plan.makespan,
            bill: planned_bill(plan, config, &self.setup),
            tasks: plan.vms.iter().flat_map(|vm| vm.vcpus.iter().flatten()).count(),
            of: self.setup.bag.tasks.len(),
        })
    }
}
