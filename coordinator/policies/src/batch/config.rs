//! Configuration of a scheduler of parallel jobs.

use dormouse_units::Ppm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Algorithm;

/// The machine, and how the scheduler uses it.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Algorithm that schedules the jobs.
    pub algorithm: Algorithm,
    /// Number of the machine's processors.
    pub processors: u32,
    /// A background VM is of use only where the foreground's CPU usage is below this
    /// (section 2.1: 96 %).
    pub usable_below: Ppm,
    /// Whether a background VM is of use where the foreground is idle: any process runs at full
    /// speed there until a foreground process comes (Figures 2 and 3).
    pub usable_idle: bool,
    /// When waiting jobs are put into the background.
    pub fill: Fill,
}

/// When waiting jobs are put into the background. The text has both: its Algorithm 1 does it in
/// every pass, its section 2.2.1 "when job departs the background tier".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// In every pass.
    #[default]
    EveryPass,
    /// In a pass before which a job left the background, or while nobody is there.
    AfterDeparture,
}

impl Config {
    /// `algorithm` on `processors` processors with the paper's threshold of 96 %.
    #[must_use]
    pub const fn new(algorithm: Algorithm, processors: u32) -> Self {
        Self {
            algorithm,
            processors,
            usable_below: Ppm::new(960_000),
            usable_idle: true,
            fill: Fill::EveryPass,
        }
    }
}
