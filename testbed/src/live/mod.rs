//! Live runs: the coordinator in this process, workers as processes of their own,
//! here or on other hosts.

mod conduct;
mod rehearsal;
mod supervise;

pub use conduct::{Conduct, LiveError, Outcome, conduct};
pub use rehearsal::{Rehearsal, rehearse};
