//! The preconditions of live runs on this host: found or missing, proved with real tasks, and how to fix it.

mod cache;
mod cause;
mod child;
mod criu;
mod examine;
mod finding;
mod groups;
mod kernel;
mod resources;
mod rights;
mod steps;

pub use cache::proved;
pub use child::examine;
pub use examine::{ExaminationDepth, HostDiagnosis, examine_here};
pub use finding::{Finding, FindingState};

pub use crate::programs::{criu_program, find_task_program};
