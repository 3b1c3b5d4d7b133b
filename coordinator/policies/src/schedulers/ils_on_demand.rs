//! The yardstick of the Burst-HADS paper: on-demand VMs, which are never taken away.

use dormouse_cloud::Market;

use super::{Given, Scheduling};
use crate::dynamic::{BagScheduler, Parts};
use crate::planner::{Primary, primary};
use crate::{BagSchedulerConfig, Plan, PlanError, Policy};

/// ILS over regular on-demand VMs.
pub(super) struct IlsOnDemand;

impl Scheduling for IlsOnDemand {
    fn name(&self) -> &'static str {
        "ils-on-demand"
    }

    fn about(&self) -> &'static str {
        "an ILS over regular on-demand VMs (the yardstick of the Burst-HADS paper)"
    }

    fn plan(&self, given: &Given<'_>) -> Result<Option<Plan>, PlanError> {
        let market = Market::OnDemand;
        primary(given, Primary { market, search: true, burstable: false }).map(Some)
    }

    fn build(&self, given: Given<'_>, plan: Option<Plan>) -> Result<Box<dyn Policy>, PlanError> {
        BagScheduler::boxed(given, plan, Parts::NONE)
    }

    fn markets(&self, _: &BagSchedulerConfig) -> Vec<Market> {
        vec![Market::OnDemand]
    }
}
