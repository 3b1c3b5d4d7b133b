//! What is found wrong.

use std::fmt;

use dormouse_units::Time;

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// In which step.
    pub seq: u64,
    /// The emulated time of the step.
    pub at: Time,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} at {}: {}", self.seq, self.at, self.what)
    }
}
