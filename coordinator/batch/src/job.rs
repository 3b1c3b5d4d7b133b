//! A rigid parallel job, as its scheduler is told of it.

use std::fmt;
use std::sync::Arc;

use dormouse_units::{Ppm, Span};
use serde::{Deserialize, Serialize};

/// A job: its position in the order of submission.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct JobId(u32);

impl JobId {
    /// The job with this position.
    #[must_use]
    pub const fn new(n: u32) -> Self {
        Self(n)
    }

    /// The position.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job{}", self.0)
    }
}

/// Which processor each process of a job is on; cheap to clone.
pub type Placement = Arc<[u32]>;

/// CPU usage of the processes of a job on a processor of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Usage {
    /// Every process uses this much.
    Uniform(Ppm),
    /// One entry a process, highest first.
    Each(Arc<[Ppm]>),
}

impl Usage {
    /// Every process uses a whole processor.
    pub const FULL: Self = Self::Uniform(Ppm::ONE);

    /// What each process uses, in any order: processes have no names, so they are put in
    /// the order in which the matching wants them, highest first.
    #[must_use]
    pub fn each(mut of: Vec<Ppm>) -> Self {
        of.sort_unstable_by(|a, b| b.cmp(a));
        Self::Each(of.into())
    }

    /// Usage of process `n`; a whole processor where nothing is known of it.
    #[must_use]
    pub fn of(&self, n: usize) -> Ppm {
        match self {
            Self::Uniform(usage) => *usage,
            Self::Each(each) => each.get(n).copied().unwrap_or(Ppm::ONE),
        }
    }
}

/// What a user says of a job when submitting it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Which.
    pub id: JobId,
    /// Its number in the trace, for people: nothing is decided by it.
    pub number: u64,
    /// Processes, each of which wants a processor.
    pub processes: u32,
    /// How long the user expects it to run.
    pub estimate: Span,
    /// CPU usage of its processes, as far as the scheduler may know it.
    pub usage: Usage,
}
