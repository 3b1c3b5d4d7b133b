//! The command behind a folder of samples, complete enough to resume it or to merge its shards.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder::{SPEC, damaged};
use super::{OwnProgram, SweepError};
use dormouse_experiment::command_line;

/// Specification of a `dormouse reproduce`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReproductionSpec {
    /// Paper and part, such as `burst-hads/table-4`.
    pub what: String,
    /// First seed of the runs.
    pub first_seed: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Number of seeds for experiments that try factors; 0 to try none.
    pub trial_seeds: u64,
    /// Settings of the experiments that try factors: pattern of cells, and `key=value`.
    pub trial_set: Vec<(String, String)>,
    /// Names of the factors that are applied to all cells.
    pub readings: Vec<String>,
    /// Settings of every cell, `key=value`.
    pub set: Vec<String>,
    /// Settings of a paper's own parts, which are not made of experiments, as `key=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_set: Vec<String>,
    /// Settings of some cells: a pattern, and `key=value`.
    pub of_cells: Vec<(String, String)>,
    /// Patterns of cells that are left out, each with the reason: the input that they need.
    pub without: Vec<(String, String)>,
    /// Data file of a user's own paper, which `what` refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PathBuf>,
    /// File of lifetimes, for parts that need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetimes: Option<PathBuf>,
    /// Folder of spot price records, for parts that need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PathBuf>,
    /// Folder of inputs, for parts that need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<PathBuf>,
    /// Words of the command that repeats the sweep.
    pub words: Vec<String>,
}

/// The command whose results a folder has; it is the same for all shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum FolderSpec {
    /// The command `dormouse reproduce`.
    Reproduce(ReproductionSpec),
    /// The command `dormouse compare`.
    Compare {
        /// Names of the schedulers; the others are compared with the first.
        schedulers: Vec<String>,
        /// Ways to save the work of tasks, if these are compared instead of schedulers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saves: Vec<String>,
        /// Experiments on which the schedulers are compared: files, or names of built-in ones.
        on: Vec<String>,
        /// Settings of every cell, `key=value`.
        set: Vec<String>,
        /// Number of seeds, from 1 on.
        seeds: u64,
        /// A user's own program in place of the experiments' tasks.
        #[serde(default, skip_serializing_if = "OwnProgram::is_none")]
        own: OwnProgram,
        /// Folders whose files the experiments may name as inputs, beside their own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_inputs: Vec<String>,
    },
    /// The command `dormouse sweep`.
    Sweep {
        /// The experiment's file, or the name of a built-in experiment.
        experiment: String,
        /// Settings, `key=value` or `key=value,value,…`.
        set: Vec<String>,
        /// Number of seeds, from 1 on, unless a setting lists seeds.
        seeds: u64,
        /// Folders whose files the experiment may name as inputs, beside its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_inputs: Vec<String>,
    },
}

/// Options that allow inputs in these folders.
fn allowed(folders: &[String]) -> impl Iterator<Item = &str> {
    folders.iter().flat_map(|folder| ["--allow-inputs", folder])
}

impl FolderSpec {
    /// The common spec of all shards of a sweep.
    pub fn of_parts(parts: &[PathBuf]) -> Result<Self, SweepError> {
        let Some((first, others)) = parts.split_first() else {
            return Err(SweepError::BadInput("give the folders of the shards".to_owned()));
        };
        let spec = Self::read(first)?;
        for other in others {
            if Self::read(other)? != spec {
                let (other, first) = (other.display(), first.display());
                return Err(SweepError::BadInput(format!(
                    "{other} and {first} are parts of different sweeps; merge the parts of one sweep"
                )));
            }
        }
        Ok(spec)
    }

    /// Whether a folder holds the results of another command.
    #[must_use]
    pub fn is_another_than_in(&self, folder: &Path) -> bool {
        Self::read(folder).is_ok_and(|there| !self.continues(&there))
    }

    /// Whether `before` is the same command, possibly with another number of seeds.
    pub fn continues(&self, before: &Self) -> bool {
        self.without_seeds() == before.without_seeds()
    }

    /// Identity of the command without its number of seeds, in bytes.
    #[must_use]
    pub fn identity(&self) -> Vec<u8> {
        // Text and numbers only: this can't fail.
        serde_json::to_vec(&self.without_seeds()).unwrap_or_default()
    }

    fn without_seeds(&self) -> Self {
        let mut spec = self.clone();
        match &mut spec {
            Self::Reproduce(asked) => {
                (asked.seeds, asked.trial_seeds) = (0, 0);
                asked.words.clear();
            }
            Self::Sweep { seeds, .. } | Self::Compare { seeds, .. } => *seeds = 0,
        }
        spec
    }

    /// Command that repeats the sweep, quoted for a shell.
    pub fn command(&self) -> String {
        command_line(self.words())
    }

    /// Words of the command that repeats the sweep.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Reproduce(asked) => asked.words.clone(),
            Self::Compare { schedulers, saves, on, set, seeds, own, allow_inputs } => {
                let list =
                    |option, list: &[String]| (!list.is_empty()).then(|| [option, list.join(",")]);
                let lists = [("--schedulers", schedulers), ("--saves", saves), ("--on", on)];
                let lists =
                    lists.into_iter().filter_map(|(option, all)| list(option.to_owned(), all));
                let words = ["dormouse", "compare"].map(str::to_owned).into_iter();
                let seeds = ["--seeds".to_owned(), seeds.to_string()];
                let set = set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]);
                let words = words.chain(lists.flatten()).chain(seeds).chain(set);
                let words = words.chain(allowed(allow_inputs).map(str::to_owned));
                words.chain(own.words().iter().cloned()).collect()
            }
            Self::Sweep { experiment, set, seeds, allow_inputs } => {
                let seeds = seeds.to_string();
                // The values of the key seed are the seeds.
                let own = set.iter().any(|set| set.split('=').next() == Some("seed"));
                let seeds = (!own).then_some(["--seeds", &seeds]);
                let set = set.iter().flat_map(|set| ["--set", set]);
                let words = ["dormouse", "sweep", experiment].into_iter().chain(set);
                let words = words.chain(seeds.into_iter().flatten());
                words.chain(allowed(allow_inputs)).map(str::to_owned).collect()
            }
        }
    }

    /// Folders whose files the experiments may name as inputs, beside their own.
    #[must_use]
    pub fn allow_inputs(&self) -> &[String] {
        match self {
            Self::Reproduce(_) => &[],
            Self::Compare { allow_inputs, .. } | Self::Sweep { allow_inputs, .. } => allow_inputs,
        }
    }

    pub(super) fn read(folder: &Path) -> Result<Self, SweepError> {
        let path = folder.join(SPEC);
        let text = fs::read_to_string(&path).map_err(SweepError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|error| damaged(&path, error.line(), &error))
    }
}
