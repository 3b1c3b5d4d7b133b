//! Live runs: the coordinator in this process, workers as processes of their own,
//! here or on other hosts.

mod conduct;
mod faithful;
mod local;
mod rehearsal;

pub use conduct::{Conduct, LiveError, Outcome, conduct};
pub use rehearsal::demand;

pub(crate) use local::roots as folder_for_jobs;
