//! The ways in which a worker's process ends by itself: workers report them, and the oracle checks them.

use std::fmt;
use std::time::Duration;

/// The way in which a worker's process ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// The coordinator told the worker that the run is over, in these words.
    Over(String),
    /// Somebody on the worker's host terminated the process.
    Terminated,
    /// The coordinator refused the worker, in these words.
    Refused(String),
    /// The worker lost its coordinator: for how long no message came, and why the last attempt to reach it failed.
    Lost(Duration, String),
    /// The worker had an error of its own, in these words.
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
