//! A recorded run's events through its scheduler again.

use std::io;
use std::path::Path;

use dormouse_batch::Scheduler;
use dormouse_coordinator::BatchStep;

use super::BatchError;
use super::digest::Digest;
use super::log::BatchLog;
use super::play::play;
use crate::output::OutputError;

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

/// What came of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many steps were compared.
    pub steps: u64,
    /// How many decisions were made.
    pub decisions: u64,
    /// The digest of the decisions made again.
    pub digest: String,
    /// The first step that came out otherwise: as recorded, as replayed.
    pub difference: Option<Box<(BatchStep, BatchStep)>>,
}

/// Feeds the events of a log to a new scheduler of its kind, and compares every decision.
///
/// # Errors
///
/// The jobs can't be read again, or the scheduler takes none of them.
pub fn replay(log: &BatchLog) -> Result<Replayed, BatchError> {
    let mut scheduler = Scheduler::new(log.header.experiment.config(log.header.machine));
    let (mut digest, mut difference) = (Digest::default(), None);
    let (mut steps, mut count) = (0, 0);
    let mut again = BatchStep::default();
    play(log, |recorded| {
        if difference.is_some() {
            return Ok(());
        }
        again.decisions.clear();
        scheduler
            .handle(recorded.at, recorded.events.iter().cloned(), &mut again.decisions)
            .map_err(|why| BatchError::Schedule(format!("step {steps} of the log: {why}")))?;
        if again.decisions != recorded.decisions {
            let decisions = std::mem::take(&mut again.decisions);
            let ours = BatchStep { decisions, ..recorded.clone() };
            difference = Some(Box::new((recorded.clone(), ours)));
            return Ok(());
        }
        for decision in &again.decisions {
            digest.add(recorded.at, decision);
        }
        steps += 1;
        count += again.decisions.len() as u64;
        Ok(())
    })?;
    Ok(Replayed { steps, decisions: count, digest: digest.hex(), difference })
}
