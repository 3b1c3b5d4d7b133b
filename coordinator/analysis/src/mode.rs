//! The mode of a run: where its machines are.

use serde::{Deserialize, Serialize};

/// The mode of a run: where its machines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Modelled, under a virtual clock.
    Virtual,
    /// Real, under a dilated clock.
    Live,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Virtual => "virtual",
            Self::Live => "live",
        })
    }
}
