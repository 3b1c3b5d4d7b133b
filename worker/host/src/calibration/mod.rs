//! Results of `dormouse calibrate` for a host: their file, and the choice of a live run's speed-up.

mod choose;
mod error;
mod file;
mod host;
mod samples;
mod table;
mod words;

pub use choose::{
    ExperimentDemand, SpeedupChoice, SpeedupSaid, SpeedupVerdict, WantedErrors, choose,
};
pub use error::CalibrationError;
pub use file::{StoredCalibration, default_path, find, folder_of, read, write};
pub use host::HostIdentity;
pub use samples::Samples;
pub use table::{
    Calibration, CalibrationCell, CalibrationConditions, CellFigures, CellOutcome, ExpectedErrors,
    FORMAT, RepeatedDuration, load_at, share_at,
};
