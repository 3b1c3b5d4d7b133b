//! The simplest scheduler: a list of VMs, and tasks in order.

use dormouse_cloud::Market;

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts};
use crate::in_order::{InOrder, WhoEnds};
use crate::{BagSchedulerConfig, Fleet, Plan, PlanError, Policy, feasibility};

/// Runs the tasks in the order of the bag on the VMs of `scheduler.fleet`. If a plan is given, the
/// scheduler only carries out the plan.
pub(super) struct Fifo;

impl ListedBagScheduler for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn about(&self) -> &'static str {
        "the tasks in their order on a given list of VMs: fleet"
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return BagScheduler::boxed_scheduler(given, plan, SchedulerParts::NONE);
        }
        feasibility::check_fleet(&given)?;
        Ok(Box::new(InOrder::new(given.config, given.problem, WhoEnds::Provider)))
    }

    fn fleet<'a>(&self, config: &'a BagSchedulerConfig) -> Option<&'a [Fleet]> {
        Some(&config.fleet)
    }

    fn markets(&self, config: &BagSchedulerConfig) -> Vec<Market> {
        config.fleet.iter().map(|fleet| fleet.market).collect()
    }
}
