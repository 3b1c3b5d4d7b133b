//! What came of a simulated run.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::invariant::Violation;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All its work is done and verified.
    Complete,
    /// It came to its end without all of its work.
    Incomplete,
    /// It was cancelled, with the reason that its log has.
    Cancelled(String),
    /// A worker that lies about the numbers of its reports has kept the end of an attempt to itself. It beats and owes no
    /// answer, so that nothing tells it from a slow one, and its run waits on.
    Withheld,
    /// The disk has damaged what was sealed of its log, and nobody goes on with it.
    Refused,
    /// It did not come to an end, which a violation says more about.
    Broken,
}

impl Ending {
    /// The ending as one word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Cancelled(_) => "cancelled",
            Self::Withheld => "withheld",
            Self::Refused => "refused",
            Self::Broken => "broken",
        }
    }
}

/// The outcome of one plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The plan's seed.
    pub seed: u64,
    /// Digest of the trace: the same plan has the same, wherever it is played.
    pub digest: String,
    /// Lines of the trace.
    pub lines: u64,
    /// How the run ended.
    pub ending: Ending,
    /// The first invariant that was broken, if one was.
    pub violation: Option<Violation>,
    /// How often each kind of fault happened.
    pub faults: BTreeMap<&'static str, u64>,
    /// The number of steps in the log.
    pub steps: u64,
    /// Coordinators that were started.
    pub coordinators: u64,
    /// Worker processes that were started.
    pub workers: u64,
    /// Checkpoints that were restored.
    pub restored: u64,
    /// Simulated time of the run, milliseconds.
    pub simulated_ms: u64,
    /// The states that the run has reached, of those that a campaign has to reach.
    pub reached: BTreeSet<&'static str>,
    /// The trace, if it was kept.
    #[serde(skip)]
    pub trace: String,
}

impl Outcome {
    /// The outcome of a seed of which nothing was played.
    #[must_use]
    pub const fn of_nothing(seed: u64) -> Self {
        Self {
            seed,
            digest: String::new(),
            lines: 0,
            ending: Ending::Broken,
            violation: None,
            faults: BTreeMap::new(),
            steps: 0,
            coordinators: 0,
            workers: 0,
            restored: 0,
            simulated_ms: 0,
            reached: BTreeSet::new(),
            trace: String::new(),
        }
    }
}
