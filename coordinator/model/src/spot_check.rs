//! Findings of spot checks: a part of a task that another host computes again.

use serde::{Deserialize, Serialize};

/// The outcome of computing a part of a task again on another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
pub enum CheckFinding {
    /// The part comes to what was reported.
    Equal,
    /// The part comes to something else.
    Differs {
        /// The reported value and the one that was computed again, as one line for the log.
        why: String,
    },
    /// The host that was to compute the part again did not.
    Unanswered {
        /// The host's words, or that it said nothing, as one line for the log.
        why: String,
    },
}
