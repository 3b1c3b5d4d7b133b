//! Why a host can't be calibrated, or a calibration not be used.

use std::io;
use std::path::{Path, PathBuf};

use dormouse_engine::drive::PlayError;

use crate::experiment::InputError;
use crate::live::LiveError;

/// What can go wrong with a calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A load leaves too few vCPUs to measure anything.
    #[error(
        "--loads {load}: this host holds {held} vCPUs then, and a cell needs 3; write {least} or more"
    )]
    Load {
        /// The load.
        load: f64,
        /// How many vCPUs the host holds at it.
        held: u32,
        /// The least that can be measured.
        least: f64,
    },
    /// The file holds something else, or half of it.
    #[error("{}: {why}; remove it, or measure again with `dormouse calibrate`", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}; name another file with {option}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The option that names it.
        option: &'static str,
        /// What stood in the way, in words.
        source: io::Error,
    },
    /// The experiment of a cell can't be made.
    #[error("the experiment of a cell can't be made: {0}")]
    Experiment(#[from] InputError),
    /// Its scheduler has no plan.
    #[error("the experiment of a cell can't be scheduled: {0}")]
    Plan(#[from] dormouse_policies::PlanError),
    /// The virtual run of a cell got stuck.
    #[error("the virtual run of a cell got stuck: {0}")]
    Stuck(#[from] PlayError<crate::batch::BatchError>),
    /// The live run of a cell broke.
    #[error(transparent)]
    Live(#[from] LiveError),
}

impl CalibrateError {
    pub(super) fn io(
        doing: &'static str,
        path: &Path,
        option: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, option, source }
    }

    /// Whether the input must change, not the system be mended.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Load { .. } | Self::Damaged { .. } | Self::Io { .. })
    }
}
