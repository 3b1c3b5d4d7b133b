//! `[checkpoint]`.

use dormouse_policies::{CheckpointOn, Period};
use dormouse_units::{Ppm, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When tasks or parallel jobs are checkpointed, and what that costs them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct CheckpointSection {
    /// What decides when.
    pub(crate) policy: Policy,
    /// Of `budget`: most that checkpoints add to a run time, as a part of it; 0.1 where it is not given.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub(crate) overhead: Option<Ppm>,
    /// Of `every`: from one to the next.
    #[schemars(example = "10m")]
    pub(crate) period: Option<Span>,
    /// Of `every`: what that is counted in; `time` where it is not given.
    pub(crate) of: Option<Period>,
    /// Of `points`: parts of the work, ascending, each above 0 and below 1.
    #[schemars(example = [0.25, 0.5, 0.75])]
    pub(crate) points: Option<Vec<Ppm>>,
    /// How long what is checkpointed stands still for one.
    #[schemars(extend("least" = "1ms"), example = "13s")]
    pub(crate) fixed: Span,
    /// How much longer for each 10^6 bytes of a task's memory; not of parallel jobs.
    pub(crate) per_megabyte: Span,
    /// On which VMs; `spot` where it is not given. Not of parallel jobs: their machine is on demand.
    pub(crate) on: Option<CheckpointOn>,
    /// Whether a VM that is told to hibernate first takes one of every task that runs there, and freezes
    /// once they are there: so do the authors of Burst-HADS. Not of parallel jobs.
    pub(crate) at_hibernation: bool,
}

impl Default for CheckpointSection {
    /// The costs of the Burst-HADS artifact: 12.995 s + 0.04 s a megabyte.
    fn default() -> Self {
        Self {
            policy: Policy::Budget,
            overhead: None,
            period: None,
            of: None,
            points: None,
            fixed: Span::from_micros(12_995_000),
            per_megabyte: Span::from_micros(40_000),
            on: None,
            at_hibernation: false,
        }
    }
}

/// When checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// As many, evenly spaced over the work, as add at most `overhead`.
    Budget,
    /// Every `period` of time or work.
    Every,
    /// At `points` of the work.
    Points,
    /// Never.
    None,
}
