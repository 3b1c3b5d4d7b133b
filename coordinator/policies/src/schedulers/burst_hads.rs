//! Burst-HADS: spot VMs with burstable ones beside them (Teylo, Arantes, Sens, Drummond).

use dormouse_cloud::Market;
use dormouse_units::Span;

use super::{Given, Scheduling};
use crate::dynamic::{BagScheduler, Parts, Stealing};
use crate::planner::{Primary, primary};
use crate::{BagSchedulerConfig, KeepIdle, MigrateMoment, Plan, PlanError, Policy, StealIf};

/// ILS over spot VMs plus burstable VMs; migrates and steals work at once.
pub(super) struct BurstHads;

impl Scheduling for BurstHads {
    fn name(&self) -> &'static str {
        "burst-hads"
    }

    fn about(&self) -> &'static str {
        "an ILS over spot VMs, burstable VMs beside them; migrates and steals at once (Burst-HADS)"
    }

    fn plan(&self, given: &Given<'_>) -> Result<Option<Plan>, PlanError> {
        primary(given, Primary { market: Market::Spot, search: true, burstable: true }).map(Some)
    }

    fn makes_plan(&self) -> bool {
        true
    }

    fn build(&self, given: Given<'_>, plan: Option<Plan>) -> Result<Box<dyn Policy>, PlanError> {
        let keep_idle = self.keeps_idle(given.config);
        let stealing = match given.config.steal_if {
            StealIf::Sooner => Stealing::IfSooner,
            StealIf::InTime => Stealing::IfInTime,
        };
        let only_beside_spot = given.config.keep_idle == KeepIdle::WhileSpotWorks;
        let parts = Parts {
            burst: true,
            migrate: MigrateMoment::AtOnce,
            stealing,
            market: Market::Spot,
            keep_idle,
            only_beside_spot,
        };
        BagScheduler::boxed(given, plan, parts)
    }

    fn keeps_idle(&self, config: &BagSchedulerConfig) -> Option<Span> {
        Some(config.allocation_cycle)
    }

    fn moves_tasks(&self) -> bool {
        true
    }
}
