//! What a live run of parallel jobs measured, put into its experiment for its twin.

use std::fs;
use std::path::Path;

use dormouse_units::Span;
use serde::Deserialize;

use super::TwinError;
use crate::batch::BatchExperiment;
use crate::live::{Consolidation, measured_sharing};
use crate::output::OutputError;

/// As much of `summary.json` as a twin needs.
#[derive(Deserialize)]
struct Summary {
    consolidation: Measured,
}

/// What sharing processors and moving jobs cost in a run.
#[derive(Deserialize)]
struct Measured {
    foreground_mean_loss: f64,
    background_utilisations: Vec<(u32, f64)>,
    /// In real seconds; zero if there was no migration.
    migration_mean_s: f64,
}

/// Replaces what the experiment says of sharing and migrations by what the run in `dir` measured.
///
/// # Errors
///
/// Its summary can't be read, or does not say.
pub(super) fn put_into(experiment: &mut BatchExperiment, dir: &Path) -> Result<(), TwinError> {
    if experiment.scheduler.name.promotion().is_none() {
        // One tier: nothing is shared, and nothing moves.
        return Ok(());
    }
    let path = dir.join("summary.json");
    let not_measured = |why: String| TwinError::NotMeasured { path: path.clone(), why };
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => not_measured("it did not come to its end".to_owned()),
        _ => OutputError::io("read", &path, error).into(),
    })?;
    let summary: Summary =
        serde_json::from_str(&text).map_err(|error| not_measured(error.to_string()))?;
    let Measured { foreground_mean_loss, background_utilisations, migration_mean_s } =
        summary.consolidation;
    let mut consolidation = Consolidation::default();
    consolidation.foreground_mean_loss = foreground_mean_loss;
    consolidation.background_utilisations = background_utilisations;
    experiment.sharing = measured_sharing(&[&consolidation]);
    if migration_mean_s > 0.0
        && let Some(cost) = Span::from_secs_f64(migration_mean_s * experiment.live.speedup)
    {
        experiment.scheduler.migration_cost = cost;
    }
    Ok(())
}
