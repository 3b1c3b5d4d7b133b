//! One attempt at a task on this VM.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{StartTask, StopTask};
use dormouse_tasks::progress::ProgressReader;
use dormouse_units::{Attempt as AttemptNo, TaskId};

use crate::{cgroup::Slot, process::Task, workspace::TaskName};

/// Names an attempt.
pub(crate) type Key = (TaskId, AttemptNo);

/// Where an attempt is in its life.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its slot is still occupied by a task that is being killed.
    Waiting {
        until: Instant,
    },
    /// Its process is being made or restored.
    Launching,
    Running,
    /// CRIU is at it, since then.
    Dumping {
        since: Instant,
    },
    /// It stands still after a dump, for as long as a checkpoint takes.
    Held {
        until: Instant,
    },
    /// It has been killed and not yet been seen to be gone.
    Dying,
    /// Its process is gone.
    Gone,
}

/// A checkpoint that is not yet reported.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) number: u32,
    pub(crate) ppm: u32,
    pub(crate) began: Instant,
    pub(crate) dump: Duration,
    /// How long the task stood still, once it runs again.
    pub(crate) held: Option<Duration>,
    /// Its size, once the coordinator has it, or why it has not.
    pub(crate) stored: Option<Result<u64, String>>,
}

/// One attempt at a task on this VM.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) order: StartTask,
    /// When the command came.
    pub(crate) asked: Instant,
    pub(crate) cpu: u32,
    pub(crate) slot: Slot,
    /// The share of a host core that is its full speed, in ppm.
    pub(crate) share: u32,
    pub(crate) phase: Phase,
    pub(crate) process: Option<Arc<Task>>,
    pub(crate) page: Option<Arc<ProgressReader>>,
    /// CPU time of its slot before it came, in nanoseconds.
    pub(crate) base_ns: u64,
    /// At which parts of the work it is still to be checkpointed, in ppm.
    pub(crate) dues: VecDeque<u32>,
    /// When to look at its progress next.
    pub(crate) look: Option<Instant>,
    /// A place at CRIU has been asked for.
    pub(crate) dump_asked: bool,
    pub(crate) pending: Option<Pending>,
    /// It is to be stopped, or has been killed because of it.
    pub(crate) stop: Option<StopTask>,
    /// It was killed because it went wrong.
    pub(crate) wrong: Option<String>,
    /// Its end has been reported while its process still waits for a thaw to die.
    pub(crate) reported: bool,
}

impl Attempt {
    /// What of its work is done, in ppm, as it says itself.
    pub(crate) fn done_ppm(&self) -> u32 {
        let page = self.page.as_ref().and_then(|page| page.read().ok());
        page.map_or(self.order.done_ppm, |p| u32::try_from(p.ppm).unwrap_or(1_000_000))
    }

    /// Something is being done to it in another thread.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Launching | Phase::Dumping { .. })
    }

    /// The checkpoints still to be taken of one that has `done` of its work done: evenly
    /// spaced over the whole work.
    pub(crate) fn dues_after(count: u32, done: u32) -> VecDeque<u32> {
        let parts = u64::from(count) + 1;
        (1..=u64::from(count))
            .map(|k| u32::try_from(k * 1_000_000 / parts).unwrap_or(1_000_000))
            .filter(|due| *due > done)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_evenly_spaced_over_what_is_left() {
        assert_eq!(Attempt::dues_after(3, 0), [250_000, 500_000, 750_000]);
        assert_eq!(Attempt::dues_after(3, 500_000), [750_000]);
        assert!(Attempt::dues_after(0, 0).is_empty());
    }
}
