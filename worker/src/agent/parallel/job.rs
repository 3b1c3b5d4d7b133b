//! One start of a parallel job on a machine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_tasks::progress::ProgressReader;

use super::{ledger::Ledger, meter::Meter, ranks::Rank};
pub(crate) use crate::agent::report::Key;
use crate::{
    process::{Ended, Task},
    workspace::TaskName,
};

pub(crate) use dormouse_units::Tier;

/// Where a job is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its slots are not all free yet.
    Waiting,
    /// Its processes are being made or restored.
    Launching,
    Running,
    /// Its processes have ended, well before it should: it has until then.
    Early {
        ended: Ended,
        late_us: i64,
    },
    /// It is being dumped, to go on elsewhere.
    Leaving,
    /// It has been killed and not yet been seen to be gone.
    Dying,
}

/// What a job is asked to do while it can't.
#[derive(Clone, Debug)]
pub(crate) enum Later {
    Move { on: Vec<u32>, asked: Instant },
    Kill,
}

/// A move under way.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) asked: Instant,
    pub(crate) dump: Duration,
    pub(crate) bytes: u64,
    /// Why it could not be kept.
    pub(crate) lost: Option<String>,
}

/// One start of a job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) args: Vec<String>,
    /// When the command came.
    pub(crate) asked: Instant,
    /// The processor of each rank.
    pub(crate) on: Vec<u32>,
    pub(crate) tier: Tier,
    pub(crate) phase: Phase,
    pub(crate) process: Option<Arc<Task>>,
    pub(crate) page: Option<ProgressReader>,
    pub(crate) ranks: Vec<Rank>,
    pub(crate) meter: Meter,
    pub(crate) ledger: Ledger,
    pub(crate) moving: Option<Move>,
    /// When its last move was decided, in the reference's time.
    pub(crate) left_at: Duration,
    pub(crate) later: Option<Later>,
}

impl Job {
    /// What of its work is done, in ppm, as it says itself.
    pub(crate) fn done_ppm(&self) -> u32 {
        let progress = self.page.as_ref().and_then(|page| page.read().ok());
        progress.map_or(0, |p| u32::try_from(p.ppm).unwrap_or(1_000_000))
    }

    /// Something is being done to it in another thread.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Launching | Phase::Leaving)
    }
}
