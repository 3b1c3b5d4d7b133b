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
    /// The tasks.
    pub(crate) bag: &'a Bag,
    /// Of all chance in it.
    pub(crate) seed: u64,
}
