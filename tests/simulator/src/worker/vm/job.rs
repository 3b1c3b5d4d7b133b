//! The part of an attempt that only parallel jobs have.

use std::time::Duration;

use dormouse_units::{Ppm, Time};
use dormouse_worker::agent::in_process::Due;
use tokio::time::Instant;

/// The part of an attempt that only parallel jobs have.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// At which parts of its work it is yet to be checkpointed, the last first.
    pub(super) points: Vec<Ppm>,
    pub(super) moving: Option<Move>,
    /// Time at which its last move was decided, in the reference.
    pub(super) left_at: Duration,
    pub(super) asked_to_leave: Option<Instant>,
    /// Time at which it should be over, once it is.
    pub(super) due: Option<Due>,
    /// Since when it stands still for a checkpoint in the reference, on the run's clock.
    pub(super) held_at: Option<Time>,
    /// Instant at which it goes on, while it stands still for a checkpoint.
    pub(super) goes_on_at: Option<Instant>,
}

/// A move under way.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) asked: Instant,
    pub(super) dump: Duration,
    pub(super) bytes: u64,
    /// Why nothing of its work comes along.
    pub(super) lost: Option<String>,
}

impl Job {
    /// Whether it is on its way to other vCPUs.
    pub(super) const fn is_moved(&self) -> bool {
        self.moving.is_some()
    }
}
