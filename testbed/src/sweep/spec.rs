//! What a folder of samples is for: enough to go on with it, or to join its parts.

use serde::{Deserialize, Serialize};

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
        /// Seeds 1 to this.
        seeds: u64,
    },
}
