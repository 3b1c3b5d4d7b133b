//! A parallel job that leaves its vCPUs for others.

use std::time::Duration;

use tokio::time::Instant;

use crate::process::ProcessEnd;

/// A move under way.
#[derive(Clone, Debug)]
pub(crate) struct OngoingMove {
    pub(crate) asked: Instant,
    pub(crate) dump: Duration,
    pub(crate) bytes: u64,
    /// Why it could not be kept.
    pub(crate) lost: Option<String>,
}

/// How a job left its places. All its processes are gone, unless it did not leave.
#[derive(Debug)]
pub enum JobDeparture {
    /// The job is to go on from this checkpoint.
    Dumped {
        /// The time that CRIU took.
        took: Duration,
        /// The size of the checkpoint.
        bytes: u64,
    },
    /// Nothing of it is left, for this reason.
    Lost {
        /// In words.
        why: String,
    },
    /// The job came to its own end first.
    Ended(ProcessEnd),
    /// The job's VM freezes: nothing was done to the job.
    Overtaken,
}
