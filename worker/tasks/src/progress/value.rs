//! The content of a progress page, and the positions of its words.

use std::fmt;
use std::time::Duration;

/// Stage of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The task has not set up its progress page yet.
    #[default]
    Starting,
    /// The task's work is under way.
    Running,
    /// The task's work is done, and its answer is verified or there is no expected value to verify it against.
    Done,
    /// The task's work is done and its answer is wrong.
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
    /// Part done of the CPU time, or of the work, that the task was given, in parts per million; [`Progress::COMPLETE`] only at the
    /// end.
    pub ppm: u64,
    /// CPU time that the work has taken, over all processes that the task has run in.
    pub cpu: Duration,
    /// Units of work that the task has done; what a unit is depends on the program.
    pub units: u64,
    /// Counter that grows with every unit of work, and so at least every few milliseconds of CPU time.
    pub heartbeat: u64,
}

impl Progress {
    /// Value of `ppm` once the run is over.
    pub const COMPLETE: u64 = 1_000_000;
}

/// Size of the progress file.
pub const PAGE_BYTES: usize = 4096;

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"DORMPROG");
pub(super) const VERSION: u64 = 1;

pub(super) const WORDS: usize = PAGE_BYTES / 8;
pub(super) const AT_MAGIC: usize = 0;
pub(super) const AT_VERSION: usize = 1;
pub(super) const AT_STATE: usize = 2;
pub(super) const AT_PPM: usize = 3;
pub(super) const AT_CPU_NS: usize = 4;
pub(super) const AT_UNITS: usize = 5;
pub(super) const AT_HEARTBEAT: usize = 6;
pub(super) const AT_HOLD: usize = 7;
pub(super) const AT_RANKS: usize = 8;
pub(super) const AT_PIDS: usize = 9;
pub(super) const AT_OWN: usize = WORDS - 2;
pub(super) const AT_FOREIGN: usize = WORDS - 1;

/// Greatest number of ranks whose process ids fit into a page.
pub const MAX_RANKS: usize = 256;

/// Index of the first word with the ranks' counters of CPU time; each rank has half a word of its own.
pub(super) const AT_WORK: usize = AT_PIDS + MAX_RANKS;
const _: () = assert!(AT_WORK + MAX_RANKS / 2 <= AT_OWN);
/// Unit of the ranks' counters of CPU time: eleven hours fit into half a word.
pub(super) const WORK_UNIT: Duration = Duration::from_micros(10);
