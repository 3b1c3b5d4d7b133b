//! The outcome of a simulated run.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::invariant::Violation;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All work of the run is done and verified.
    Complete,
    /// The run came to its end without all of its work done.
    Incomplete,
    /// The run was cancelled, for the reason in its log.
    Cancelled(String),
    /// A worker that lies about the numbers of its reports never reported the end of an attempt. It still beats and
    /// owes no answer, so that it looks like a slow worker, and the run waits on.
    Withheld,
    /// The disk has damaged a sealed part of the log, so that the run can't be resumed.
    Refused,
    /// The run did not come to an end; a violation says why.
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
    /// Digest of the trace: the same plan always has the same digest, wherever it is played.
    pub digest: String,
    /// Number of lines in the trace.
    pub lines: u64,
    /// How the run ended.
    pub ending: Ending,
    /// The first violation of an invariant; `None` if there was none.
    pub violation: Option<Violation>,
    /// How often each kind of fault happened, by the kind's name.
    pub faults: BTreeMap<&'static str, u64>,
    /// The number of steps in the log.
    pub steps: u64,
    /// Number of coordinators that were started.
    pub coordinators: u64,
    /// Number of worker processes that were started.
    pub workers: u64,
    /// Number of checkpoints that were restored.
    pub restored: u64,
    /// Simulated time of the run, milliseconds.
    pub simulated_ms: u64,
    /// Names of the states that the run has reached, of those that a campaign must reach.
    pub reached: BTreeSet<&'static str>,
    /// The text of the trace, if it was kept; otherwise empty.
    #[serde(skip)]
    pub trace: String,
}

impl Outcome {
    /// The outcome of a seed that was not played.
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
