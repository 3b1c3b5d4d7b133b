//! A parallel job that moves from its vCPUs to others.

use std::time::Duration;

use tokio::time::Instant;

use crate::process::ProcessEnd;

/// A move of a parallel job to other seats that is under way.
#[derive(Clone, Debug)]
pub(crate) struct OngoingMove {
    pub(crate) asked: Instant,
    pub(crate) dump: Duration,
    pub(crate) bytes: u64,
    /// Why the job's checkpoint was lost, in words; `None`: the checkpoint wasn't lost.
    pub(crate) lost: Option<String>,
}

/// How a job left its seats. All processes of the job are gone, unless it didn't leave.
#[derive(Debug)]
pub enum JobDeparture {
    /// The job was dumped, to be restored from this checkpoint.
    Dumped {
        /// Time of CRIU's dump.
        took: Duration,
        /// Size of the checkpoint in bytes.
        bytes: u64,
    },
    /// The job's work is lost.
    Lost {
        /// Reason for which the job's work is lost, in words.
        why: String,
    },
    /// The job ended before it could be dumped.
    Ended(ProcessEnd),
    /// The job's VM is about to freeze: nothing was done to the job.
    Overtaken,
}
