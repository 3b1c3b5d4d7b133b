//! `dormouse calibrate`: measures how exactly this host emulates at which speed-up, by short live
//! runs beside their virtual twins.

mod bag;
mod bench;
mod error;

pub use bag::{CellPlan, conditions};
pub use bench::{Bench, Measured, errors};
pub use error::CalibrateError;
