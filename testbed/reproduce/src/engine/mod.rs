//! Existing engines that run the shards of a command as an array of jobs, and then a job that
//! merges them.

mod array_job;
mod error;
mod hyper_queue;
mod kinds;
mod kubernetes;
mod local;
mod script;
mod slurm;
mod submission;

pub use array_job::ArrayJob;
pub use error::EngineError;
pub use kinds::JobEngine;
pub use local::run_here;
pub use submission::{EngineSubmission, check_installed, printed, submit};
