//! A recorded run of parallel jobs again.

use std::io;
use std::path::Path;

use dormouse_engine::DecisionDigest;

use super::BatchError;
use super::log::BatchLog;
use super::play::play;
use crate::output::OutputError;
use crate::replay::Replayed;

/// The digest that `summary.json` in this folder has; `None` where there is no summary, because the
/// run was killed.
///
/// # Errors
///
/// The summary can't be read, or has no digest.
pub fn recorded_digest(folder: &Path) -> Result<Option<String>, OutputError> {
    let path = folder.join("summary.json");
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| OutputError::io("read", &path, error))?,
    };
    let summary = serde_json::from_str::<serde_json::Value>(&text).ok();
    let digest = summary.and_then(|s| Some(s.get("decisions_sha256")?.as_str()?.to_owned()));
    digest.map(Some).ok_or(OutputError::NoKey { path, key: "decisions_sha256" })
}

/// Feeds the events of a log to a new run of its experiment, and compares every step. Where the
/// steps were left out the run is made again: what its digest should be, the summary says.
///
/// # Errors
///
/// The jobs can't be read again.
pub fn replay(log: &BatchLog) -> Result<Replayed, BatchError> {
    if let Some(steps) = &log.steps {
        let run = log.header.experiment.simulation(log.header.machine).run();
        return Ok(crate::replay::replay(run, steps));
    }
    let (mut steps, mut decisions, mut digest) = (0, 0, DecisionDigest::default());
    play(log, |step| {
        steps += 1;
        decisions += step.decisions.len() as u64;
        step.decisions.iter().for_each(|decision| digest.add(step.at, decision));
        Ok(())
    })?;
    Ok(Replayed { steps, decisions, digest: digest.hex(), difference: None })
}
