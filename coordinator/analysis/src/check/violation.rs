//! A broken rule, with the step that broke it.

use std::fmt;

use dormouse_units::Time;

/// A rule that a step of a run breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// Sequence number of the step.
    pub seq: u64,
    /// The emulated time of the step.
    pub at: Time,
    /// The broken rule, as a sentence.
    pub what: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} at {}: {}", self.seq, self.at, self.what)
    }
}
