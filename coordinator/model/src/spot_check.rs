//! Findings of spot checks, in which another host repeats part of a task.

use serde::{Deserialize, Serialize};

/// Result of repeating a part of a task on another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
pub enum CheckFinding {
    /// The repeated part has the reported result.
    Equal,
    /// The repeated part has another result.
    Differs {
        /// The reported and the repeated value, as one line for the log.
        why: String,
    },
    /// The host that was asked to repeat the part sent no result.
    Unanswered {
        /// The error, or that no answer came, as one line for the log.
        why: String,
    },
}
