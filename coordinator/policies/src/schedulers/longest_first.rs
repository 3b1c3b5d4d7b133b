//! A simple rule: a baseline for schedulers that search or forecast.

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts};
use crate::in_order::InOrder;
use crate::provision::BuyingOrder;
use crate::{Plan, PlanError, Policy};

/// Runs the longest task first, on spot VMs of the cheapest type up to its limit, then of the next, as long as a task has no vCPU.
/// A task whose VM is hibernated or preempted continues at once, on an on-demand VM if no vCPU is free; a VM that resumes is used
/// again. The rule considers neither the deadline nor probabilities. If a plan is given, the scheduler only carries out the plan.
pub(super) struct LongestFirst;

impl ListedBagScheduler for LongestFirst {
    fn name(&self) -> &'static str {
        "longest-first"
    }

    fn about(&self) -> &'static str {
        "the longest task first on the cheapest spot VMs; what hibernates goes on-demand at once"
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return BagScheduler::boxed_scheduler(given, plan, SchedulerParts::NONE);
        }
        BuyingOrder::check_offers(&given)?;
        Ok(Box::new(InOrder::longest_first(given.config, given.problem)))
    }
}
