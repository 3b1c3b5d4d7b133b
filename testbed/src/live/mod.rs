//! Live runs: the coordinator in this process, workers as processes of their own,
//! here or on other hosts.

mod conduct;
mod local;
mod rehearsal;
mod signals;
mod supervise;

pub use conduct::{Conduct, LiveError, Outcome, conduct};
pub use rehearsal::{Rehearsal, rehearse};

pub(crate) use local::roots as folder_for_jobs;
pub(crate) use signals::Signals;
