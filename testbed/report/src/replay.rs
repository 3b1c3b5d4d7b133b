//! Replays a recorded run: its steps as recorded, or recomputed if they were left out, and its
//! events through the engine and its schedulers.

use std::io;
use std::path::Path;

use dormouse_engine::DecisionDigest;
use dormouse_engine::drive::PlayError;
use dormouse_model::Step;
use dormouse_policies::PlanError;

use crate::jobs::JobsError;
use crate::output::{OutputError, RunLog};
use crate::virtual_run::{model, play_out};

/// Error of repeating a recorded run.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No scheduler can be made from the run's header.
    #[error("{0}; give the folder of a run")]
    Scheduler(#[from] PlanError),
    /// The run's parallel jobs can't be read again.
    #[error(transparent)]
    Jobs(#[from] JobsError),
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayResult {
    /// Number of steps compared, or computed again if the log has none.
    pub steps: u64,
    /// Number of decisions in the replayed steps.
    pub decisions: u64,
    /// Digest of the decisions in the replayed steps.
    pub digest: String,
    /// First step that differs: as recorded, as replayed.
    pub difference: Option<Box<(Step, Step)>>,
}

/// Calls `see` with every step of a run.
///
/// # Errors
///
/// The log has no steps, and the run can't be repeated.
pub fn play(log: &RunLog, mut see: impl FnMut(&Step)) -> Result<(), ReplayError> {
    if let Some(steps) = &log.steps {
        steps.iter().for_each(see);
        return Ok(());
    }
    let experiment = &log.header.experiment;
    let mut run = experiment.run(experiment.scheduler()?);
    let jobs = experiment.submissions().map_err(JobsError::from)?;
    let see = |step: &Step| {
        see(step);
        Ok(())
    };
    match play_out(experiment, &mut run, &mut model(experiment), jobs, see) {
        Err(PlayError::Outside(error)) => Err(error.into()),
        Err(PlayError::Scheduler(why)) => Err(JobsError::Scheduler(why).into()),
        // The run ends with work left, as it did before: its last step tells so.
        Ok(()) | Err(PlayError::Stuck { .. } | PlayError::Limit { .. }) => Ok(()),
    }
}

/// Feeds the events of a log to a new run of its experiment, and compares every step. If the log
/// has no steps the run is repeated; its digest is then compared with the summary's.
///
/// # Errors
///
/// The run can't be repeated.
pub fn replay(log: &RunLog) -> Result<ReplayResult, ReplayError> {
    let (mut steps, mut decisions) = (0, 0);
    let Some(recorded) = &log.steps else {
        let mut digest = DecisionDigest::default();
        play(log, |step| {
            steps += 1;
            decisions += step.decisions.len() as u64;
            step.decisions.iter().for_each(|decision| digest.add_decision(step.at, decision));
        })?;
        return Ok(ReplayResult { steps, decisions, digest: digest.to_hex(), difference: None });
    };
    let experiment = &log.header.experiment;
    let mut run = experiment.run(experiment.scheduler()?);
    let mut difference = None;
    for step in recorded {
        steps += 1;
        let (again, _) = run.handle_again(step);
        if again != *step {
            difference = Some(Box::new((step.clone(), again)));
            break;
        }
        decisions += again.decisions.len() as u64;
    }
    Ok(ReplayResult { steps, decisions, digest: run.digest(), difference })
}

/// The digest in the `summary.json` of a folder; `None` if there is no summary because the run was
/// killed.
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
    let why = "there is no decisions_sha256 in it; give the folder of a run that was left whole";
    digest.map(Some).ok_or_else(|| OutputError::Unfit { path, why: why.to_owned() })
}
