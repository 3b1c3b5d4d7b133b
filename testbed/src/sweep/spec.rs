//! What a folder of samples is for: enough to go on with it, or to join its parts.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SweepError;
use super::folder::SPEC;

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

    fn read(folder: &Path) -> Result<Self, SweepError> {
        let path = folder.join(SPEC);
        let text = fs::read_to_string(&path).map_err(SweepError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| {
            let why = format!("line {}: {error}", error.line());
            SweepError::Damaged { path, why }
        })
    }
}
