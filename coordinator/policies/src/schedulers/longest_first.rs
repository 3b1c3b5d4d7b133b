//! A rule in three lines, beside which schedulers that search and foresee can be judged.

use dormouse_cloud::Market;

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts};
use crate::in_order::InOrder;
use crate::provision::BuyingOrder;
use crate::{Plan, PlanError, Policy, feasibility};

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
        let SchedulerInput { config, problem, catalogue, bag, .. } = given;
        if BuyingOrder::new(&problem).all_types().next().is_none() {
            let offered =
                [Market::Spot, Market::OnDemand].map(|m| problem.regular_types(m)).into_iter();
            let kinds: Vec<_> = offered.flatten().map(|(kind, _)| kind).collect();
            if !kinds.is_empty() {
                feasibility::check_tasks(&problem, bag, &kinds)?;
            }
            let (scheduler, known) = (config.name.as_str(), catalogue.list_names());
            let what = "regular type on which every task can run";
            return Err(PlanError::NothingOffered { scheduler, what, known });
        }
        Ok(Box::new(InOrder::longest_first(config, problem)))
    }
}
