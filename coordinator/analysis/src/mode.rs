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

impl Mode {
    /// What is said of work that is done: in virtual time there is no answer to be verified.
    #[must_use]
    pub const fn completed(self) -> &'static str {
        match self {
            Self::Virtual => "completed",
            Self::Live => "completed and verified",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Virtual => "virtual",
            Self::Live => "live",
        })
    }
}
