//! Live runs: the coordinator in this process, workers as processes of their own,
//! here or on other hosts.

mod attend;
mod batch;
mod conduct;
mod consolidation;
mod faithful;
mod host_load;
mod kept;
mod local;
mod pace;
mod promises;
mod rehearsal;
mod signals;
mod submitted;
#[cfg(test)]
mod testing;
mod utilisation;

pub use batch::{BatchConduct, conduct_batch};
pub use conduct::{Conduct, LiveError, Outcome, conduct};
pub use consolidation::Consolidation;
pub use kept::{Kept, LifeErrors};
pub use rehearsal::{Rehearsal, rehearse};
pub use utilisation::measured_sharing;

pub(crate) use local::roots as folder_for_jobs;
pub(crate) use pace::Pace;
#[cfg(test)]
pub(crate) use promises::promises;
pub(crate) use signals::Signals;
#[cfg(test)]
pub(crate) use submitted::Submitted;
pub(crate) use submitted::{expected, jobs_in};
