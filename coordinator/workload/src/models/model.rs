//! The models by name.

use std::fmt;
use std::str::FromStr;

use dormouse_model::Submission;
use dormouse_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ModelTargets, calibrated, lublin};

/// A statistical model that generates a workload of parallel jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A model with the moments that the MEASY paper states for its FWload, which was made by Feitelson's model.
    FwLike,
    /// A model with the moments that the MEASY paper states for its JWload, which was made by Jann's model.
    JwLike,
    /// The model of Lublin and Feitelson 1999, with its streams of batch and interactive jobs merged.
    Lublin,
    /// Lublin's model with its parameters for logs that do not distinguish interactive and batch jobs.
    LublinTypeless,
}

/// Reason why the models can't make a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The machine has too few processors for the models.
    #[error("the models need a machine of at least 8 processors, not {0}")]
    SmallMachine(u32),
    /// The requested number of jobs is too small for the models.
    #[error("a workload has at least 2 jobs, not {0}")]
    FewJobs(usize),
    /// The requested number of jobs is too large for the models.
    #[error("a workload has at most 4,000,000,000 jobs, not {0}")]
    ManyJobs(usize),
}

impl ModelError {
    /// Checks that the models can generate this many jobs for a machine of this size.
    pub(super) const fn check_size(jobs: usize, machine: u32) -> Result<(), Self> {
        if machine < 8 {
            return Err(Self::SmallMachine(machine));
        }
        if jobs < 2 {
            return Err(Self::FewJobs(jobs));
        }
        if jobs > 4_000_000_000 {
            return Err(Self::ManyJobs(jobs));
        }
        Ok(())
    }
}

impl Model {
    /// All workload models.
    pub const ALL: [Self; 4] = [Self::FwLike, Self::JwLike, Self::Lublin, Self::LublinTypeless];

    /// The model's name, as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FwLike => "fw-like",
            Self::JwLike => "jw-like",
            Self::Lublin => "lublin",
            Self::LublinTypeless => "lublin-typeless",
        }
    }

    /// Generates `jobs` jobs for a machine of `machine` processors, in order of submission. Times are whole seconds,
    /// and estimates equal the run times. The load is that of the model, without scaling.
    ///
    /// # Errors
    ///
    /// The models don't make so many jobs, or none for such a machine.
    pub fn generate(
        self,
        jobs: usize,
        machine: u32,
        seed: u64,
    ) -> Result<Vec<Submission>, ModelError> {
        if let Some(targets) = self.targets() {
            return targets.generate(jobs, machine, seed);
        }
        ModelError::check_size(jobs, machine)?;
        Ok(match self {
            Self::LublinTypeless => lublin::generate_typeless(jobs, machine, seed),
            _ => lublin::generate(jobs, machine, seed),
        })
    }

    /// The longest estimate that the model's users may give: as long as a run of fw-like and
    /// jw-like may be, 18 h (the MEASY paper names no limit; it was the longest queue of the
    /// machine that JWload fits), and 48 h for Lublin's models, whose runs go up to e^12 s, which
    /// is 45.2 h.
    #[must_use]
    pub fn longest(self) -> Span {
        self.targets().map_or(Span::from_secs(172_800), |targets| targets.longest)
    }

    /// Calibration targets of the model; `None`: it is not calibrated.
    #[must_use]
    pub const fn targets(self) -> Option<ModelTargets> {
        match self {
            Self::FwLike => Some(calibrated::FW),
            Self::JwLike => Some(calibrated::JW),
            Self::Lublin | Self::LublinTypeless => None,
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|m| m.name() == text).ok_or_else(|| {
            format!(
                "there is no model '{text}'; there are fw-like, jw-like, lublin and lublin-typeless"
            )
        })
    }
}
