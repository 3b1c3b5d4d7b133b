//! Arguments from which a scheduler of a bag is built.

use dormouse_cloud::Catalogue;
use dormouse_model::{Bag, CheckpointConfig};

use crate::BagSchedulerConfig;
use crate::problem::SchedulingProblem;

/// A bag, the types it may run on, and the configuration of its scheduler.
pub(crate) struct SchedulerInput<'a> {
    /// Configuration of the scheduler.
    pub(crate) config: &'a BagSchedulerConfig,
    /// The bag and the catalogue as tables of numbers.
    pub(crate) problem: SchedulingProblem,
    /// The types on offer.
    pub(crate) catalogue: &'a Catalogue,
    /// When tasks are checkpointed, and what that costs.
    pub(crate) checkpoints: &'a CheckpointConfig,
    /// The bag of tasks to schedule.
    pub(crate) bag: &'a Bag,
    /// Seed of all random choices in planning.
    pub(crate) seed: u64,
}
