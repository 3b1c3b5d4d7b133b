//! A simple rule that uses the deadline: a baseline for schedulers that search or forecast.

use super::{ListedBagScheduler, SchedulerInput};
use crate::lazy::LazyScheduler;
use crate::provision::BuyingOrder;
use crate::{Plan, PlanError, Policy};

/// Runs the most urgent task first, on spot VMs of the cheapest type up to its limit, then of the next. A
/// task whose VM hibernates waits for the resume or for another spot VM. On-demand VMs are launched at the
/// last moment at which they can still finish by the deadline.
pub(super) struct Lazy;

impl ListedBagScheduler for Lazy {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn about(&self) -> &'static str {
        "the cheapest spot VMs until only on-demand VMs can still make the deadline"
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return Err(PlanError::TakesNoPlan {
                scheduler: "lazy",
                why: "decides during the run",
            });
        }
        BuyingOrder::check_offers(&given)?;
        Ok(Box::new(LazyScheduler::new(given.config, given.problem)))
    }
}
