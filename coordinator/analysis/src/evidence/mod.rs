//! What the coordinator itself reckons of a live run, from its own log, beside what its workers say: ends
//! that came too early, and checkpoints that were due.

mod checkpoints;
mod early;
mod reckoned;

pub use checkpoints::ShortOfCheckpoints;
pub use early::EarlyEnd;
pub use reckoned::Evidence;
