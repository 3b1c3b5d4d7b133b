//! What a folder of samples is for: enough to go on with it, or to join its parts.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SweepError;
use super::folder::SPEC;
use crate::command_line::command_line;

/// The command behind a folder, whatever its shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Spec {
    /// `dormouse reproduce`.
    Reproduce {
        /// What of which paper, such as `burst-hads/table-4`.
        what: String,
        /// `paper` or `artifact`.
        preset: String,
        /// Seeds 1 to this.
        seeds: u64,
        /// Seeds of each experiment that looks for causes; 0: none.
        cause_seeds: u64,
        /// What k_h and k_r of Table V count: the events of each spot `type`, of the whole
        /// `market`, or of each type as `emulated` by the authors.
        events: String,
        /// Settings of every cell, `key=value`.
        set: Vec<String>,
    },
    /// `dormouse reproduce measy`.
    ReproduceMeasy {
        /// `measy` or `measy/FIGURE`.
        what: String,
        /// The log of KTH-SP2.
        kth: Option<PathBuf>,
        /// Only so many jobs of each workload.
        jobs: Option<usize>,
        /// Of all chance.
        seed: u64,
        /// How two VMs share a processor, as measured.
        two_tier: Option<PathBuf>,
        /// Whether causes are looked for.
        causes: bool,
    },
    /// `dormouse sweep`.
    Sweep {
        /// A file or a built-in experiment.
        experiment: String,
        /// Settings, `key=value` or `key=value,value,…`.
        set: Vec<String>,
        /// Seeds 1 to this, unless the list of values is one of seeds.
        seeds: u64,
    },
}

impl Spec {
    /// The one that all parts of a sweep are for.
    ///
    /// # Errors
    ///
    /// The parts are of different sweeps or damaged, or the system refuses.
    pub fn of_parts(parts: &[PathBuf]) -> Result<Self, SweepError> {
        let Some((first, others)) = parts.split_first() else {
            return Err(SweepError::BadInput("give the folders of the shards".to_owned()));
        };
        let spec = Self::read(first)?;
        for other in others {
            if Self::read(other)? != spec {
                let (first, other) = (first.clone(), other.clone());
                return Err(SweepError::Mismatch { first, other });
            }
        }
        Ok(spec)
    }

    /// Whether results of `before` are of the same command, which may have been given fewer or more
    /// seeds.
    #[must_use]
    pub fn continues(&self, before: &Self) -> bool {
        match (self.clone(), before) {
            (
                Self::Reproduce { what, preset, events, set, .. },
                Self::Reproduce { seeds, cause_seeds, .. },
            ) => {
                let (seeds, cause_seeds) = (*seeds, *cause_seeds);
                *before == Self::Reproduce { what, preset, seeds, cause_seeds, events, set }
            }
            (Self::Sweep { experiment, set, .. }, Self::Sweep { seeds, .. }) => {
                *before == Self::Sweep { experiment, set, seeds: *seeds }
            }
            (other, before) => other == *before,
        }
    }

    /// The command without its seeds, in short.
    pub(super) fn subject(&self) -> String {
        let words = |before: &[&str], set: &[String]| {
            let set = set.iter().flat_map(|set| ["--set", set]);
            command_line(before.iter().copied().chain(set))
        };
        match self {
            Self::Reproduce { what, preset, events, set, .. } => {
                words(&["reproduce", what, "--preset", preset, "--events", events], set)
            }
            Self::ReproduceMeasy { what, kth, jobs, seed, .. } => {
                let log = kth.as_ref().map(|_| " with a log").unwrap_or_default();
                let jobs = jobs.map(|n| format!(" of {n} jobs")).unwrap_or_default();
                format!("reproduce {what}{jobs}{log}, seed {seed}")
            }
            Self::Sweep { experiment, set, .. } => words(&["sweep", experiment], set),
        }
    }

    pub(super) fn read(folder: &Path) -> Result<Self, SweepError> {
        let path = folder.join(SPEC);
        let text = fs::read_to_string(&path).map_err(SweepError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| {
            let why = format!("line {}: {error}", error.line());
            SweepError::Damaged { path, why }
        })
    }
}
