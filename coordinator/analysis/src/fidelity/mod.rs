//! Fidelity of a live run: the promised and the taken times of its tasks and jobs, the costs of two
//! jobs on a processor, and everything else that keeps a run from behaving like its model.

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
mod utilisation;
mod verdict;

pub use background::BackgroundSupply;
pub use consolidation::Consolidation;
pub use faithful::TwinDistance;
pub use faithful::{notes, troubles};
pub use host_load::other_load;
pub use kept::{LifeErrors, PromiseErrors};
pub use pace::{PHASE, RunPace};
pub use promises::{JobLife, JobPromise, promises};
pub use submitted::{SubmittedJobs, expected, jobs_in};
pub use task_times::{TaskTime, TaskTimes, owed, span_of, task_times};
pub use utilisation::{measured_sharing, utilisations};
pub use verdict::{AllowedErrors, FidelityVerdict};
