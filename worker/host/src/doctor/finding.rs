//! One precondition of live runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The state in which a precondition was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// The precondition is met.
    Found,
    /// The precondition could be met better; live runs are possible.
    Doubtful,
    /// The precondition is missing, and live runs are not possible without it.
    Missing,
}

/// One precondition of live runs: what was found, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The name of the precondition.
    pub name: String,
    /// The state in which the precondition was found.
    pub state: FindingState,
    /// What was found about the precondition on this host, in words.
    pub found: String,
    /// The remedy, in words; `None` if nothing is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Duration of a step of doctor's live test in microseconds; `None` for a finding that is not such a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
    /// True if only runs with checkpoints need the precondition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_checkpoints: bool,
}

impl Finding {
    pub(crate) fn new(
        name: &str,
        state: FindingState,
        found: impl Into<String>,
        fix: Option<String>,
    ) -> Self {
        let (name, found) = (name.into(), found.into());
        Self { name, state, found, fix, took_us: None, for_checkpoints: false }
    }

    pub(crate) fn found_finding(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, FindingState::Found, found, None)
    }

    pub(crate) fn missing_finding(
        name: &str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(name, FindingState::Missing, found, Some(fix.into()))
    }

    /// A finding whose precondition is met if `good`, else doubtful.
    pub(crate) fn judged_finding(
        name: &str,
        good: bool,
        found: impl Into<String>,
        fix: &str,
    ) -> Self {
        let (state, fix) = if good {
            (FindingState::Found, None)
        } else {
            (FindingState::Doubtful, Some(fix.to_owned()))
        };
        Self::new(name, state, found, fix)
    }

    /// The finding, marked as needed only by runs with checkpoints.
    pub(crate) fn of_checkpoints(self) -> Self {
        Self { for_checkpoints: true, ..self }
    }

    /// The finding with the duration of the test step that it is about.
    pub(crate) fn that_took(self, took: Duration) -> Self {
        Self { took_us: u64::try_from(took.as_micros()).ok(), ..self }
    }
}
