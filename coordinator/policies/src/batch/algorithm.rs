//! The five algorithms and what they may do.

use std::fmt;
use std::str::FromStr;

use dormouse_units::Ppm;
use serde::{Deserialize, Serialize};

/// How parallel jobs get their processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// First come, first served.
    Fcfs,
    /// FCFS with a reservation for the head of the queue and backfilling.
    Easy,
    /// EASY on two tiers; a background job that is to run in the foreground elsewhere is
    /// killed and restarts (Algorithm 1 of the paper).
    Keasy,
    /// EASY on two tiers; a background job never leaves its processors (Algorithm 3).
    Reasy,
    /// As KEASY, with migration instead of the kill (section 2.3.2).
    Measy,
}

/// What happens to a background job that may run in the foreground, but not where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPromotion {
    /// It is killed and starts again.
    Kill,
    /// It waits until its own processors are free.
    Wait,
    /// It moves with what it has done.
    Migrate,
}

impl Algorithm {
    /// All of them, simplest first.
    pub const ALL: [Self; 5] = [Self::Fcfs, Self::Easy, Self::Keasy, Self::Reasy, Self::Measy];

    /// Its name, as experiments write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Easy => "easy",
            Self::Keasy => "keasy",
            Self::Reasy => "reasy",
            Self::Measy => "measy",
        }
    }

    /// Whether jobs behind the head of the queue may start before it.
    #[must_use]
    pub const fn backfills(self) -> bool {
        !matches!(self, Self::Fcfs)
    }

    /// How it brings background jobs to the foreground; `None` if it uses one tier only.
    #[must_use]
    pub const fn promotion(self) -> Option<OnPromotion> {
        match self {
            Self::Fcfs | Self::Easy => None,
            Self::Keasy => Some(OnPromotion::Kill),
            Self::Reasy => Some(OnPromotion::Wait),
            Self::Measy => Some(OnPromotion::Migrate),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no algorithm has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no batch scheduler '{0}'; there are fcfs, easy, keasy, reasy and measy")]
pub struct UnknownAlgorithmError(String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithmError;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithmError> {
        let wanted = text.to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|a| a.name() == wanted)
            .ok_or_else(|| UnknownAlgorithmError(text.to_owned()))
    }
}

/// What a scheduler is told about its machine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Processors of the machine.
    pub processors: u32,
    /// A background VM is of use only where the foreground's CPU usage is below this
    /// (section 2.1: 96 %).
    pub usable_below: Ppm,
    /// Whether it is of use where the foreground is idle: any process runs at full speed there,
    /// until one comes (Figures 2 and 3).
    pub usable_idle: bool,
    /// When waiting jobs are put into the background.
    pub fill: Fill,
}

/// When waiting jobs are put into the background. The text has both: its Algorithm 1 does it in
/// every pass, its section 2.2.1 "when job departs the background tier".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
