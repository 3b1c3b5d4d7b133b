//! HADS: spot VMs, and on-demand VMs where spot VMs can't meet the deadline.

use dormouse_cloud::Market;
use dormouse_units::Span;

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts, StealingRule};
use crate::planner::{PrimarySchedule, primary_schedule};
use crate::{BagSchedulerConfig, KeepIdle, Plan, PlanError, Policy};

/// Greedy plan over spot VMs; puts migrations off as long as the deadline allows.
pub(super) struct Hads;

impl ListedBagScheduler for Hads {
    fn name(&self) -> &'static str {
        "hads"
    }

    fn about(&self) -> &'static str {
        "a greedy plan over spot VMs; puts migrations off as long as the deadline allows (HADS)"
    }

    fn plan(&self, given: &SchedulerInput<'_>) -> Result<Option<Plan>, PlanError> {
        primary_schedule(
            given,
            PrimarySchedule { market: Market::Spot, search: false, burstable: false },
        )
        .map(Some)
    }

    fn makes_plan(&self) -> bool {
        true
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        let keep_idle = self.keeps_idle(given.config);
        let stealing = StealingRule::OffOnDemand;
        let only_beside_spot = given.config.keep_idle == KeepIdle::WhileSpotWorks;
        let parts = SchedulerParts {
            burst: false,
            migrate: given.config.migrate,
            stealing,
            market: Market::Spot,
            keep_idle,
            only_beside_spot,
        };
        BagScheduler::boxed_scheduler(given, plan, parts)
    }

    fn keeps_idle(&self, config: &BagSchedulerConfig) -> Option<Span> {
        Some(config.allocation_cycle)
    }

    fn moves_tasks(&self) -> bool {
        true
    }
}
