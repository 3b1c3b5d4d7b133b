//! How true a live run was: what its jobs were promised and took, what two jobs on a processor
//! cost each other, and what else kept it from being as its model has it.

mod consolidation;
mod faithful;
mod host_load;
mod kept;
mod pace;
mod promises;
mod submitted;
#[cfg(test)]
mod testing;
mod utilisation;

pub use consolidation::Consolidation;
pub use kept::{Kept, LifeErrors};
pub use utilisation::measured_sharing;

pub(crate) use faithful::{notes, troubles};
pub(crate) use host_load::other_load;
pub(crate) use pace::{PHASE, Pace};
pub(crate) use promises::promises;
pub(crate) use submitted::{Submitted, expected, jobs_in};
pub(crate) use utilisation::utilisations;
