//! State of one attempt on a VM, from its start to its end.

use std::time::Duration;

use dormouse_units::{Attempt, TaskId, Tier};

/// An attempt at a task, by the task and the attempt's number.
pub type Key = (TaskId, Attempt);

/// Kind of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptKind {
    /// A task of one process.
    Task,
    /// A parallel job, which can be moved to other vCPUs of its VM.
    Job,
}

/// Stage of an attempt on its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptPhase {
    /// The attempt waits for its slots: another attempt in them is being killed or moved.
    Waiting {
        /// Time after the VM's creation at which the wait is given up; `None`: never.
        until: Option<Duration>,
    },
    /// The attempt's process is being started or restored.
    Launching,
    /// The attempt's process exists, and runs or is stopped.
    Running,
    /// CRIU is dumping the attempt.
    Dumping,
    /// The attempt's process has ended with the work done, perhaps before its promised time: the attempt finishes at that time.
    Early,
    /// The attempt was killed, but its process hasn't been seen gone.
    Dying {
        /// Time after the VM's creation by which the process should be gone; `None`: no deadline is set.
        by: Option<Duration>,
    },
    /// The attempt's process is gone, and the report of its end waits for its last checkpoint.
    Gone,
}

/// A taken checkpoint that isn't reported yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCheckpoint {
    pub(super) number: u32,
    /// True if the task runs again after its stop for the checkpoint.
    pub(super) goes_on: bool,
    /// Whether the coordinator has stored the checkpoint; `None`: not known yet.
    pub(super) stored: Option<bool>,
}

/// An attempt with its stage, and what is requested of it.
#[derive(Clone, Debug)]
pub(super) struct AttemptLife {
    pub(super) key: Key,
    pub(super) kind: AttemptKind,
    /// vCPU of each process of the attempt, in order of rank.
    pub(super) on: Vec<u32>,
    pub(super) tier: Tier,
    pub(super) phase: AttemptPhase,
    /// True if the attempt is queued for a permit to use CRIU.
    pub(super) asked: bool,
    /// True if another checkpoint was requested while one is under way.
    pub(super) again: bool,
    pub(super) pending: Option<PendingCheckpoint>,
    /// `Some` once the attempt is to be stopped, or was killed for that: true if its work is to be kept.
    pub(super) stop: Option<bool>,
    /// Reason why the attempt was killed without a request to stop it; `None`: it wasn't.
    pub(super) wrong: Option<String>,
    /// True if the attempt's end was reported before its process was gone.
    pub(super) reported: bool,
    /// vCPUs to which a job is to be moved once that is possible; `None`: no move waits.
    pub(super) later: Option<Vec<u32>>,
    /// True if a job that was moved is restored from the checkpoint with which it left its previous vCPUs.
    pub(super) moving: bool,
}

impl AttemptLife {
    /// Returns whether work on the attempt is under way in a different thread; the end of that work will be an event.
    pub(super) const fn is_busy(&self) -> bool {
        matches!(self.phase, AttemptPhase::Launching | AttemptPhase::Dumping)
    }

    /// Returns whether the attempt is still stopped for a taken checkpoint.
    pub(super) fn is_kept(&self) -> bool {
        self.pending.is_some_and(|pending| !pending.goes_on)
    }
}
