//! `dormouse calibrate`: how exactly this host emulates at which speed-up, and the speed-up that
//! live runs take from it.

mod bag;
mod choose;
mod compare;
mod date;
mod error;
mod file;
mod host;
mod measure;
mod stop;
mod table;
mod text;

pub use bag::CellPlan;
pub use choose::{Choice, Demand, SpeedupChoice, Wanted, choose};
pub use error::CalibrateError;
pub use file::{Found, default_path, find, read, write};
pub use host::HostIdentity;
pub use measure::{Bench, Measured};
pub use stop::Stop;
pub use table::{Calibration, Came, Cell, Conditions, Expected, FORMAT, Spread, load_at};
pub(crate) use text::HEAD;
pub use text::table;
