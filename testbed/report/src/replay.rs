//! A recorded run again: its steps, as recorded or made anew where the log was too long to be kept;
//! and its events through the engine and its schedulers.

use std::io;
use std::path::Path;

use dormouse_engine::DecisionDigest;
use dormouse_engine::drive::PlayError;
use dormouse_model::Step;
use dormouse_policies::PlanError;

use crate::jobs::JobsError;
use crate::output::{OutputError, RunLog};
use crate::virtual_run::{model, play_out};

/// Why a recorded run can't be made again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No scheduler can be made of its header.
    #[error("{0}; give the folder of a run")]
    Scheduler(#[from] PlanError),
    /// The run's parallel jobs can't be had again.
    #[error(transparent)]
    Jobs(#[from] JobsError),
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// How many steps were compared, or made again where there are none to compare with.
    pub steps: u64,
    /// How many decisions they hold.
    pub decisions: u64,
    /// The digest of the decisions made again.
    pub digest: String,
    /// The first step that came out otherwise: as recorded, as replayed.
    pub difference: Option<Box<(Step, Step)>>,
}

/// Shows every step of a run to `see`.
///
/// # Errors
///
/// Its steps were left out of its log, and it can't be made again.
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
        // It ends with work left, as it did: its last step says so.
        Ok(()) | Err(PlayError::Stuck { .. } | PlayError::Limit { .. }) => Ok(()),
    }
}

/// Feeds the events of a log to a new run of its experiment, and compares every step. Where the
/// steps were left out the run is made again: what its digest should be, the summary says.
///
/// # Errors
///
/// It can't be made again.
pub fn replay(log: &RunLog) -> Result<Replayed, ReplayError> {
    let (mut steps, mut decisions) = (0, 0);
    let Some(recorded) = &log.steps else {
        let mut digest = DecisionDigest::default();
        play(log, |step| {
            steps += 1;
            decisions += step.decisions.len() as u64;
            step.decisions.iter().for_each(|decision| digest.add(step.at, decision));
        })?;
        return Ok(Replayed { steps, decisions, digest: digest.hex(), difference: None });
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
    Ok(Replayed { steps, decisions, digest: run.digest(), difference })
}

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
    let why = "there is no decisions_sha256 in it; give the folder of a run that was left whole";
    digest.map(Some).ok_or_else(|| OutputError::Unfit { path, why: why.to_owned() })
}
