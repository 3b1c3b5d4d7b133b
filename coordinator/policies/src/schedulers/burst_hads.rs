//! Burst-HADS: spot VMs with burstable ones beside them (Teylo, Arantes, Sens, Drummond).

use dormouse_cloud::Market;
use dormouse_units::Span;

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts, StealingRule};
use crate::planner::{PrimarySchedule, primary_schedule};
use crate::{BagSchedulerConfig, KeepIdle, MigrateMoment, Plan, PlanError, Policy, StealIf};

/// ILS over spot VMs plus burstable VMs; migrates and steals work at once.
pub(super) struct BurstHads;

impl ListedBagScheduler for BurstHads {
    fn name(&self) -> &'static str {
        "burst-hads"
    }

    fn about(&self) -> &'static str {
        "an ILS over spot VMs, burstable VMs beside them; migrates and steals at once (Burst-HADS)"
    }

    fn plan(&self, given: &SchedulerInput<'_>) -> Result<Option<Plan>, PlanError> {
        primary_schedule(
            given,
            PrimarySchedule { market: Market::Spot, search: true, burstable: true },
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
        let stealing = match given.config.steal_if {
            StealIf::Sooner => StealingRule::IfSooner,
            StealIf::InTime => StealingRule::IfInTime,
        };
        let only_beside_spot = given.config.keep_idle == KeepIdle::WhileSpotWorks;
        let parts = SchedulerParts {
            burst: true,
            migrate: MigrateMoment::AtOnce,
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
