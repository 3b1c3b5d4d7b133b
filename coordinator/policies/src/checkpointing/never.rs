//! No checkpoints at all.

use dormouse_units::Time;

use super::{Checkpointing, Quote, TaskView, When};

/// Tasks begin anew wherever they are interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoCheckpoints;

impl Checkpointing for NoCheckpoints {
    fn next(&mut self, _: Time, _: &TaskView, _: &Quote<'_>) -> Option<When> {
        None
    }
}
