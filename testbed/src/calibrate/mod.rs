//! `dormouse calibrate`: measures how exactly this host emulates at which speed-up, by short live
//! runs beside their virtual twins.

mod bag;
mod bench;
mod error;

pub use bag::{CellPlan, conditions};
pub use bench::errors;
pub(crate) use bench::{Bench, Measured};
pub use error::CalibrateError;
