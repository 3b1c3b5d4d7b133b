//! How true a live run was: what its tasks and jobs were promised and took, what two jobs on a
//! processor cost each other, and what else kept it from being as its model has it.

mod background;
mod consolidation;
mod faithful;
mod figures;
mod host_load;
mod kept;
mod pace;
mod promises;
mod submitted;
mod task_times;
#[cfg(test)]
mod testing;
mod twin_distance;
mod utilisation;
mod verdict;

pub use background::Background;
pub use consolidation::Consolidation;
pub use faithful::{notes, troubles};
pub use host_load::other_load;
pub use kept::{Kept, LifeErrors};
pub use pace::{PHASE, Pace};
pub use promises::{Life, Promise, promises};
pub use submitted::{Submitted, expected, jobs_in};
pub use task_times::{TaskTime, TaskTimes, owed, span_of, task_times};
pub use twin_distance::TwinDistance;
pub use utilisation::{measured_sharing, utilisations};
pub use verdict::{Allowed, Fidelity};
