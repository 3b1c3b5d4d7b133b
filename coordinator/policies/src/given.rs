//! What a scheduler of a bag is built for.

use dormouse_cloud::Catalogue;
use dormouse_model::{Bag, CheckpointConfig};

use crate::BagSchedulerConfig;
use crate::problem::Problem;

/// A bag, what it may be run on, and what is set about its scheduler.
pub(crate) struct Given<'a> {
    /// What is set about it.
    pub(crate) config: &'a BagSchedulerConfig,
    /// The bag and the catalogue as numbers.
    pub(crate) problem: Problem,
    /// The types on offer.
    pub(crate) catalogue: &'a Catalogue,
    /// When tasks are checkpointed.
    pub(crate) checkpoints: &'a CheckpointConfig,
    /// The bag of tasks to schedule.
    pub(crate) bag: &'a Bag,
    /// Seed of all random choices in planning.
    pub(crate) seed: u64,
}
