//! `dormouse measure`: measures a user's own program, which runs alone on a VM that is never preempted.
//!
//! Each kind of task is a live run by itself, in the jail, the groups and the quota that tasks have in runs. The
//! measurements and outputs are read from the log of this run.

mod carried;
mod read;
mod undisturbed;

pub use carried::{carried_off, compare};
pub use read::{MeasureError, Sample, measured};
pub use undisturbed::undisturbed;
