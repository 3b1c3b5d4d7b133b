//! The yardstick of the Burst-HADS paper: on-demand VMs, which are never taken away.

use dormouse_cloud::Market;

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts};
use crate::planner::{PrimarySchedule, primary_schedule};
use crate::{BagSchedulerConfig, OnDemandPlan, Plan, PlanError, Policy};

/// ILS over regular on-demand VMs.
pub(super) struct IlsOnDemand;

impl ListedBagScheduler for IlsOnDemand {
    fn name(&self) -> &'static str {
        "ils-on-demand"
    }

    fn about(&self) -> &'static str {
        "an ILS over regular on-demand VMs (the yardstick of the Burst-HADS paper)"
    }

    fn plan(&self, given: &SchedulerInput<'_>) -> Result<Option<Plan>, PlanError> {
        let plan = |market| {
            primary_schedule(given, PrimarySchedule { market, search: true, burstable: false })
        };
        if given.config.on_demand_plan == OnDemandPlan::Own {
            return plan(Market::OnDemand).map(Some);
        }
        let mut spot = plan(Market::Spot)?;
        spot.vms.iter_mut().for_each(|vm| vm.market = Market::OnDemand);
        let SchedulerInput { config, catalogue, bag, checkpoints, .. } = *given;
        let (plan, _) = spot.reckoned(config, catalogue, bag, checkpoints);
        plan.check(catalogue, bag)?;
        Ok(Some(plan))
    }

    fn makes_plan(&self) -> bool {
        true
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        BagScheduler::boxed_scheduler(given, plan, SchedulerParts::NONE)
    }

    fn markets(&self, _: &BagSchedulerConfig) -> Vec<Market> {
        vec![Market::OnDemand]
    }
}
