//! Results of `dormouse calibrate` for a host: their file, and the choice of a live run's speed-up.

mod choose;
mod error;
mod file;
mod host;
mod samples;
mod table;
mod words;

pub use choose::{Choice, Demand, SpeedupChoice, SpeedupSaid, Wanted, choose};
pub use error::CalibrationError;
pub use file::{Found, default_path, find, folder_of, read, write};
pub use host::HostIdentity;
pub use samples::Samples;
pub use table::{
    Calibration, Came, Cell, CellFigures, Conditions, ExpectedErrors, FORMAT, Spread, load_at,
    share_at,
};
