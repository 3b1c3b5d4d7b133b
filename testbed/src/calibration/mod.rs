//! What `dormouse calibrate` has measured of a host: its file, and the speed-up that a live run
//! takes from it.

mod choose;
mod error;
mod file;
mod host;
mod table;
mod text;

pub use choose::{Choice, Demand, SpeedupChoice, Wanted, choose};
pub use error::CalibrationError;
pub use file::{Found, default_path, find, read, write};
pub use host::HostIdentity;
pub use table::{Calibration, Came, Cell, Conditions, Expected, FORMAT, Spread, load_at};
pub use text::table;

pub(crate) use file::folder;
pub(crate) use table::share_at;
pub(crate) use text::HEAD;

#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::host::tests::host;
    pub(crate) use super::table::tests::{calibration, cell};
}
