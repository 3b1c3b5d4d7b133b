//! A scheduler by its name.

use dormouse_cloud::Catalogue;

use crate::dynamic::BagScheduler;
use crate::fifo::Fifo;
use crate::problem::Problem;
use crate::{
    Bag, BagSchedulerConfig, BagSchedulerName, CheckpointBudget, PlanError, Policy, feasibility,
    planner,
};

/// The bag-of-tasks scheduler that `config` describes, its primary schedule made.
///
/// The same arguments give the same scheduler, always. `budget` is what the tasks' checkpoints
/// will cost; finish estimates contain it.
///
/// # Errors
///
/// See [`PlanError`].
pub fn build(
    config: &BagSchedulerConfig,
    catalogue: &Catalogue,
    bag: &Bag,
    budget: &CheckpointBudget,
    seed: u64,
) -> Result<Box<dyn Policy>, PlanError> {
    let problem = Problem::new(catalogue, bag, budget, config.restore, config.margin);
    if config.name == BagSchedulerName::Fifo && config.plan.is_none() {
        config.check()?;
        feasibility::check(config, &problem, catalogue, bag)?;
        return Ok(Box::new(Fifo::new(config, problem)));
    }
    let plan = planner::make(config, &problem, catalogue, bag, seed)?;
    Ok(Box::new(BagScheduler::new(config, problem, plan)))
}
