//! What a batch scheduler hears and what it decides.

use dormouse_units::{Attempt, Time};
use serde::{Deserialize, Serialize};

use crate::job::{Job, JobId, Placement};

/// What a scheduler hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A user submitted a job.
    Submitted(Job),
    /// A job ended by itself; a report about an attempt that was killed since is dropped.
    Finished {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
    },
}

/// One of the two VMs of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Highest CPU priority.
    Foreground,
    /// Gets the cycles that the foreground leaves.
    Background,
}

/// How a background job comes to the foreground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Move {
    /// The VMs of its processors swap their priorities; nothing restarts.
    Swap,
    /// It is killed and starts again in the foreground of these processors.
    Kill {
        /// One processor a process, in order of falling CPU usage.
        on: Placement,
    },
    /// It goes on in the foreground of these processors.
    Migrate {
        /// One processor a process, in order of falling CPU usage.
        on: Placement,
    },
}

/// Why a job got processors now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Everything submitted before it has the foreground.
    FirstInLine,
    /// It is expected to end before the head's reservation begins.
    EndsBeforeShadow {
        /// Whose reservation.
        head: JobId,
        /// When the reservation begins.
        shadow: Time,
    },
    /// The head does not need these processors when its reservation begins.
    OnExtra {
        /// Whose reservation.
        head: JobId,
        /// When the reservation begins.
        shadow: Time,
        /// Extra processors left before this job took its own.
        extra: u32,
    },
    /// The shortest waiting job for which the background has room.
    ShortestWaiting,
}

/// What a scheduler decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Start a waiting job.
    Start {
        /// Which.
        job: JobId,
        /// Which of its starts this is.
        attempt: Attempt,
        /// Where on each processor.
        tier: Tier,
        /// One processor a process, in order of falling CPU usage.
        on: Placement,
        /// Why now.
        why: Why,
    },
    /// Bring a background job to the foreground.
    Promote {
        /// Which.
        job: JobId,
        /// Which of its starts this is; a new one after a kill.
        attempt: Attempt,
        /// How.
        by: Move,
        /// Why now.
        why: Why,
    },
}

impl Decision {
    /// The job it is about.
    #[must_use]
    pub const fn job(&self) -> JobId {
        match self {
            Self::Start { job, .. } | Self::Promote { job, .. } => *job,
        }
    }
}
