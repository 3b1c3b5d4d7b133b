//! The content of a progress page.

use std::fmt;
use std::time::Duration;

/// Stage of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The task has not set up its progress page yet.
    #[default]
    Starting,
    /// The work is under way.
    Running,
    /// The work is done, and its answer is verified or has no reference to be verified against.
    Done,
    /// The work is done and its answer is wrong.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "is starting",
            Self::Running => "is running",
            Self::Done => "is done",
            Self::Failed => "has failed",
        })
    }
}

impl State {
    pub(super) fn from_word(word: u64) -> Option<Self> {
        [Self::Starting, Self::Running, Self::Done, Self::Failed]
            .into_iter()
            .find(|state| state.to_word() == word)
    }

    pub(super) fn to_word(self) -> u64 {
        match self {
            Self::Starting => 0,
            Self::Running => 1,
            Self::Done => 2,
            Self::Failed => 3,
        }
    }
}

/// The content of a progress page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Stage of the task.
    pub state: State,
    /// Parts per million of the CPU time, or of the work, that the task was given;
    /// [`Progress::COMPLETE`] only at the end.
    pub ppm: u64,
    /// CPU time that the work has taken, over all processes that the task has run in.
    pub cpu: Duration,
    /// Units of work done; what a unit is depends on the program.
    pub units: u64,
    /// Counter that grows at every unit of work, at least every few milliseconds of CPU time.
    pub heartbeat: u64,
}

impl Progress {
    /// Value of `ppm` once the run is over.
    pub const COMPLETE: u64 = 1_000_000;
}
