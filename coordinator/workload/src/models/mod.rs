//! Models of workloads, and of the estimates that users give.

mod calibrated;
mod lublin;
mod model;
mod tsafrir;

pub use calibrated::ModelTargets;
pub use model::{Model, ModelError};
pub use tsafrir::{EstimatesError, tsafrir_estimates};
