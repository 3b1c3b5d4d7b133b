//! Tasks that run together or not at all.

use dormouse_cloud::Market;
use dormouse_model::CheckpointScheme;
use dormouse_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ListedBagScheduler, SchedulerInput};
use crate::gang::{GangRules, GangScheduler};
use crate::parameters::ParameterSchema;
use crate::{BagSchedulerConfig, Fleet, Plan, PlanError, Policy, feasibility};

/// Runs all tasks of the bag at the same time, as the processes of a parallel program, on the VMs of
/// `scheduler.fleet`. If one VM is lost, all tasks restart from their last common checkpoint once a similar VM is there.
pub(super) struct Gang;

/// Parameters that only the scheduler `gang` has.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GangParameters {
    /// Time between two checkpoints of all tasks at once; if not given, there are no checkpoints at regular times.
    #[schemars(extend("least" = "1us"), example = "10m")]
    period: Option<Span>,
    /// True if all tasks are checkpointed and stopped when one of the VMs gets its preemption notice; they continue once
    /// another VM is in its place.
    #[serde(default)]
    at_notice: bool,
}

impl ListedBagScheduler for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn about(&self) -> &'static str {
        "all tasks at once on a given list of VMs: when one is taken away, all restart from their last common checkpoint"
    }

    fn parameters(&self) -> ParameterSchema {
        ParameterSchema::from_type::<GangParameters>()
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return Err(PlanError::TakesNoPlan {
                scheduler: "gang",
                why: "decides during the run",
            });
        }
        feasibility::check_fleet(&given)?;
        let GangParameters { period, at_notice } = given.config.own.read()?;
        if period == Some(Span::ZERO) {
            let (key, value, want) = ("period", "0s".to_owned(), "it has to be above 0");
            return Err(PlanError::Parameter { key, value, want });
        }
        if !matches!(given.checkpoints.scheme, CheckpointScheme::None {}) {
            // A member that is checkpointed by itself has no state in common with the others.
            let want = "it checkpoints all tasks at once by scheduler.period: [checkpoint] policy has to be \"none\"";
            return Err(PlanError::Parameter { key: "name", value: "gang".to_owned(), want });
        }
        let rules = GangRules { period, at_notice };
        Ok(Box::new(GangScheduler::new(given.config, given.problem, rules)?))
    }

    fn moves_tasks(&self) -> bool {
        true
    }

    fn takes_workflows(&self) -> bool {
        false
    }

    fn fleet<'a>(&self, config: &'a BagSchedulerConfig) -> Option<&'a [Fleet]> {
        Some(&config.fleet)
    }

    fn markets(&self, config: &BagSchedulerConfig) -> Vec<Market> {
        config.fleet.iter().map(|fleet| fleet.market).collect()
    }
}
