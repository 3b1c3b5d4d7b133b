//! What a plan comes to, for people and programs that compare it with its run.

use dormouse_policies::{Plan, planned_bill};
use dormouse_units::{Money, Span};

use super::Experiment;

/// Figures of the plan of a bag, to be compared with those of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFigures {
    /// When the last task ends, from the beginning, boot included.
    pub makespan: Span,
    /// What the run costs that goes as planned, by the provider's tariff.
    pub bill: Money,
    /// Number of tasks that have a place in the plan.
    pub tasks: usize,
    /// Number of tasks of the bag.
    pub of: usize,
}

impl PlannedFigures {
    /// Whether all tasks have a place in the plan. Tasks of a workflow that follow others have none.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.tasks == self.of
    }
}

impl Experiment {
    /// The figures of a plan of this experiment's bag; `None`: it has no bag.
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
