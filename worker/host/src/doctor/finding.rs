//! One precondition of live runs.

use serde::{Deserialize, Serialize};

/// How a precondition was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is there.
    Found,
    /// It could be better; live runs are possible.
    Doubtful,
    /// Live runs are not possible without it.
    Missing,
}

/// One precondition, what was found of it, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub name: String,
    /// How it was found.
    pub state: State,
    /// What this host has of it, in words.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub(crate) fn found(name: &str, found: impl Into<String>) -> Self {
        Self { name: name.into(), state: State::Found, found: found.into(), fix: None }
    }

    pub(crate) fn missing(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        let (found, fix) = (found.into(), Some(fix.into()));
        Self { name: name.into(), state: State::Missing, found, fix }
    }

    /// Found if `good`, else doubtful.
    pub(crate) fn judged(name: &str, good: bool, found: impl Into<String>, fix: &str) -> Self {
        let (state, fix) =
            if good { (State::Found, None) } else { (State::Doubtful, Some(fix.to_owned())) };
        Self { name: name.into(), state, found: found.into(), fix }
    }
}
