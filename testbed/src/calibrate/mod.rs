//! `dormouse calibrate`: measures how exactly this host emulates at which speed-up.

mod bag;
mod compare;
mod date;
mod error;
mod measure;
mod stop;

pub use bag::CellPlan;
pub use error::CalibrateError;
pub use measure::{Bench, Measured};
pub use stop::Stop;
