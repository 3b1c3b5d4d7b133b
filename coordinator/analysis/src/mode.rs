//! Mode of a run.

use serde::{Deserialize, Serialize};

/// Mode of a run: on modelled or on real machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    /// The run uses modelled machines under a virtual clock.
    Virtual,
    /// The run uses real machines under a dilated clock.
    Live,
}

impl std::fmt::Display for RunMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Virtual => "virtual",
            Self::Live => "live",
        })
    }
}
