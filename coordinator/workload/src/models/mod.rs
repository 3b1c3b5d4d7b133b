//! Models of workloads, and of the estimates that users give.

mod calibrated;
mod lublin;
mod model;
mod tsafrir;
mod tsafrir_tables;

pub use calibrated::ModelTargets;
pub use model::{Model, ModelError};
pub use tsafrir::{EstimatesError, tsafrir_estimates};
