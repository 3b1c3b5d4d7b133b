//! Errors of calibrating a host.

use dormouse_engine::drive::PlayError;
use dormouse_host::calibration::CalibrationError;

use crate::live::LiveError;
use dormouse_experiment::InputError;

/// Errors of a calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A load of the host, given with `--loads`, leaves too few vCPUs to measure anything.
    #[error(
        "--loads {load}: at this load the host has room for {held} emulated vCPUs, but a measurement needs 3; \
         give {least} or more"
    )]
    Load {
        /// The load of the host as given with `--loads`: busy vCPUs as a fraction of those that the host holds at 1/24 of a core
        /// each.
        load: f64,
        /// The number of vCPUs that the host holds at this load.
        held: u32,
        /// The least load of the host that can be measured: busy vCPUs as a fraction of those that it holds at 1/24 of a core each.
        least: f64,
    },
    /// The calibration's file can't be read or written.
    #[error(transparent)]
    File(#[from] CalibrationError),
    /// The experiment of a cell can't be made.
    #[error("the experiment of a cell can't be made: {0}")]
    Experiment(#[from] InputError),
    /// The scheduler of a cell's experiment finds no plan.
    #[error("the experiment of a cell can't be scheduled: {0}")]
    Plan(#[from] dormouse_policies::PlanError),
    /// The virtual run of a cell got stuck.
    #[error("the virtual run of a cell got stuck: {0}")]
    Stuck(#[from] PlayError<dormouse_report::jobs::JobsError>),
    /// The live run at one of the calibrated speed-ups and loads failed.
    #[error(transparent)]
    Live(#[from] LiveError),
}

impl CalibrateError {
    /// Whether the user has to change the input, rather than repair the system.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Live(error) => error.is_bad_input(),
            _ => matches!(self, Self::Load { .. } | Self::File(_)),
        }
    }
}
