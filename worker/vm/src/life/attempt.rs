//! One attempt, as far as its life is concerned.

use std::time::Duration;

use dormouse_units::{Attempt, TaskId, Tier};

/// An attempt at a task.
pub type Key = (TaskId, Attempt);

/// What an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptKind {
    /// A task of one process.
    Task,
    /// A parallel job: it can go elsewhere on its VM, too.
    Job,
}

/// The stage of an attempt's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptPhase {
    /// The attempt's slots are not all free yet: somebody in them is being killed or goes
    /// elsewhere.
    Waiting {
        /// Until when, at most.
        until: Option<Duration>,
    },
    /// The attempt's process is being made or restored.
    Launching,
    /// The attempt's process is there, and runs or stands still.
    Running,
    /// CRIU is at it.
    Dumping,
    /// The attempt's process is gone and its work done, perhaps before its time: it is finished
    /// when that has come.
    Early,
    /// The attempt has been killed and not yet been seen to be gone.
    Dying {
        /// The time at which it should be gone.
        by: Option<Duration>,
    },
    /// The attempt's process is gone, and its end waits for its last checkpoint.
    Gone,
}

/// A checkpoint that is there and not yet reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCheckpoint {
    pub(super) number: u32,
    /// The task goes on, having stood still for the checkpoint.
    pub(super) goes_on: bool,
    /// Whether the coordinator has it, once that is known.
    pub(super) stored: Option<bool>,
}

/// One attempt and where it is in its life.
#[derive(Clone, Debug)]
pub(super) struct AttemptLife {
    pub(super) key: Key,
    pub(super) kind: AttemptKind,
    /// The vCPU of each of its processes, and the tier of their slots.
    pub(super) on: Vec<u32>,
    pub(super) tier: Tier,
    pub(super) phase: AttemptPhase,
    /// A place at CRIU has been asked for.
    pub(super) asked: bool,
    /// A checkpoint is wanted beside the one under way.
    pub(super) again: bool,
    pub(super) pending: Option<PendingCheckpoint>,
    /// The attempt is to be stopped, or has been killed because of it; whether it is to be kept.
    pub(super) stop: Option<bool>,
    /// Why it was killed though nobody wanted it stopped.
    pub(super) wrong: Option<String>,
    /// The attempt's end has been reported while something of it is still there.
    pub(super) reported: bool,
    /// A job's: where it is to go once it can.
    pub(super) later: Option<Vec<u32>>,
    /// A job's: it is to go on from the checkpoint with which it left its former places.
    pub(super) moving: bool,
}

impl AttemptLife {
    /// Something is being done to it elsewhere, of which will be heard.
    pub(super) const fn is_busy(&self) -> bool {
        matches!(self.phase, AttemptPhase::Launching | AttemptPhase::Dumping)
    }

    /// The attempt stands still since its checkpoint, and has done nothing since.
    pub(super) fn is_kept(&self) -> bool {
        self.pending.is_some_and(|pending| !pending.goes_on)
    }
}
