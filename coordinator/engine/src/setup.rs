//! What a run is made of: all that its outcome depends on, besides its events.

use dormouse_cloud::{Catalogue, InterruptionModel};
use dormouse_policies::{Bag, CheckpointBudget};
use dormouse_units::Span;
use serde::{Deserialize, Serialize};

/// The particulars of a run. It is the first line of the event log, so a log
/// can be replayed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The seed of all chance in the run.
    pub seed: u64,
    /// What the provider offers.
    pub catalogue: Catalogue,
    /// What is to be run.
    pub bag: Bag,
    /// When tasks are checkpointed.
    pub checkpoint: CheckpointBudget,
    /// When spot VMs are taken away and given back.
    pub interruptions: Vec<InterruptionModel>,
    /// How long before a preemption its VM is warned.
    pub preemption_notice: Span,
}
