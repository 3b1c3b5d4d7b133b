//! CPU usage of the processes of a parallel job.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Ppm;

/// CPU usage of the processes of a job on a processor of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Usage {
    /// Every process uses this share of a processor.
    Uniform(Ppm),
    /// CPU usage of each process as a share of a processor, highest first.
    Each(Arc<[Ppm]>),
}

impl Usage {
    /// Every process uses a whole processor.
    pub const FULL: Self = Self::Uniform(Ppm::ONE);

    /// The usage of each process, given in any order: processes have no names, so they are sorted with the highest
    /// usage first, as matching needs them.
    #[must_use]
    pub fn each_process(mut of: Vec<Ppm>) -> Self {
        of.sort_unstable_by(|a, b| b.cmp(a));
        Self::Each(of.into())
    }

    /// The usage of every process, if all processes have the same usage; `None` if each has its own.
    #[must_use]
    pub const fn uniform_usage(&self) -> Option<Ppm> {
        match self {
            Self::Uniform(usage) => Some(*usage),
            Self::Each(_) => None,
        }
    }

    /// The usage of process `n`; a whole processor if the usage of that process is not known.
    #[must_use]
    #[inline]
    pub fn of_process(&self, n: usize) -> Ppm {
        match self {
            Self::Uniform(usage) => *usage,
            Self::Each(each) => each.get(n).copied().unwrap_or(Ppm::ONE),
        }
    }
}
