//! A rule in three lines, beside which schedulers that search and foresee can be judged.

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts};
use crate::in_order::InOrder;
use crate::provision::BuyingOrder;
use crate::{Plan, PlanError, Policy};

/// The longest task first on spot VMs, the cheapest type up to its limit, then the next, as long as a
/// task has no vCPU. What the provider hibernates or takes goes on at once, on on-demand VMs where no
/// vCPU is free; a VM that resumes is used again. Neither deadline nor chance is reckoned with. Given a
/// plan, the scheduler only carries that out.
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
