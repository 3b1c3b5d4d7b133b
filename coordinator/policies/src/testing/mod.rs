//! Tests of the algorithms by hand, against the authors' plans, and of how computation grows. The
//! effects of decisions are tested on the engine's runs (`coordinator/engine/tests/engine/policies`).
#![allow(clippy::unwrap_used, reason = "a panic is how these fail")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "tests read the authors' plans and print figures; the schedulers do neither"
)]

mod algorithms;
mod authors;
mod fixture;
mod growth;
mod lazy;
mod longest_first;
mod planned_bill;
mod stored;

use std::path::PathBuf;

use dormouse_model::{CheckpointConfig, CheckpointOn, CheckpointScheme};
use dormouse_units::Span;

/// Configuration by which no checkpoints are planned; a checkpoint taken when a task leaves its VM costs
/// what it costs in the authors' artifact.
fn no_budget() -> CheckpointConfig {
    CheckpointConfig {
        scheme: CheckpointScheme::None {},
        fixed: Span::from_micros(12_995_000),
        per_megabyte: Span::from_micros(40_000),
        on: CheckpointOn::All,
        ..CheckpointConfig::NONE
    }
}

/// A folder of `DORMOUSE_DATA`, or of the data folder beside the workspace.
pub(crate) fn data_folder(name: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("DORMOUSE_DATA").map_or(beside, PathBuf::from);
    let folder = root.join(name);
    if !folder.is_dir() {
        println!("skipped: {} is not there; set DORMOUSE_DATA", folder.display());
    }
    folder.is_dir().then_some(folder)
}
