//! The ways in which a worker's process ends by itself: told by workers, and looked at by the oracle.

use std::fmt;
use std::time::Duration;

/// The way in which a worker's process ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// The coordinator said that it is over, in these words.
    Over(String),
    /// Somebody on its host ended it.
    Terminated,
    /// The coordinator does not take it, in these words.
    Refused(String),
    /// Nothing was heard for so long, and why the last attempt to reach the coordinator failed.
    Lost(Duration, String),
    /// An error of its own.
    Failed(String),
}

impl fmt::Display for WorkerEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over(why) => write!(f, "over: {why}"),
            Self::Terminated => f.write_str("it was terminated"),
            Self::Refused(why) => write!(f, "it was refused: {why}"),
            Self::Lost(after, why) => {
                write!(f, "nothing was heard for {} ms: {why}", after.as_millis())
            }
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}
