//! A scheduler by its name.

use dormouse_cloud::Catalogue;

use crate::dynamic::BagScheduler;
use crate::fifo::Fifo;
use crate::problem::Problem;
use crate::{
    Bag, BagSchedulerConfig, BagSchedulerName, CheckpointConfig, PlanError, Policy, feasibility,
    planner,
};

/// The bag-of-tasks scheduler that `config` describes, its primary schedule made.
///
/// The same arguments give the same scheduler, always. `checkpoints` says which the
/// tasks are expected to take; finish estimates contain what they cost.
///
/// # Errors
///
/// See [`PlanError`].
pub fn build(
    config: &BagSchedulerConfig,
    catalogue: &Catalogue,
    bag: &Bag,
    checkpoints: &CheckpointConfig,
    seed: u64,
) -> Result<Box<dyn Policy>, PlanError> {
    let problem = Problem::new(catalogue, bag, checkpoints, config.restore, config.margin);
    if config.name == BagSchedulerName::Fifo && config.plan.is_none() {
        config.check()?;
        feasibility::check(config, &problem, catalogue, bag)?;
        return Ok(Box::new(Fifo::new(config, problem)));
    }
    let plan = planner::make(config, &problem, catalogue, bag, seed)?;
    Ok(Box::new(BagScheduler::new(config, problem, plan)))
}
