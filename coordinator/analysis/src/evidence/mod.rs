//! The coordinator's own checks of a live run, from its own log beside what its workers report:
//! ends that came too early, and checkpoints that were due.

mod checkpoints;
mod early;
mod reckoned;

pub use checkpoints::CheckpointShortfall;
pub use early::EarlyEnd;
pub use reckoned::Evidence;
