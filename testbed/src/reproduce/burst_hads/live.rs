//! Finished live runs, to be drawn beside the virtual ones.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Results;
use super::targets::{costs, makespans};
use crate::sweep::SweepError;
use dormouse_workload::Estimate;

/// What is taken from the `summary.json` of a live run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LiveRun {
    /// The experiment.
    pub experiment: String,
    /// The scheduler.
    pub scheduler: String,
    mode: String,
    /// The seed.
    pub seed: u64,
    /// Emulated seconds; `None`: not all tasks were finished.
    pub makespan_s: Option<f64>,
    /// Dollars.
    pub cost_usd: f64,
    fidelity: Option<Faithful>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Faithful {
    faithful: bool,
    worst_share_error: Option<f64>,
    #[serde(default)]
    notes: Vec<String>,
}

impl LiveRun {
    /// Reads the folder of a run.
    ///
    /// # Errors
    ///
    /// It is no folder of a live run.
    pub fn read(folder: &Path) -> Result<Self, SweepError> {
        let path = folder.join("summary.json");
        let damaged =
            |path: PathBuf, why: String| SweepError::BadInput(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(&path)
            .map_err(|e| damaged(path.clone(), format!("{e}; give the folder of a live run")))?;
        let run: Self = serde_json::from_str(&text)
            .map_err(|e| damaged(path.clone(), format!("{e}; give the folder of a live run")))?;
        if run.mode != "live" {
            let why = format!("it is a {} run; give one made with --live", run.mode);
            return Err(damaged(path, why));
        }
        Ok(run)
    }

    /// The cell it belongs to.
    #[must_use]
    pub fn case(&self) -> String {
        format!("{}/{}", self.experiment, self.scheduler)
    }

    /// Whether its emulation kept its promises.
    #[must_use]
    pub fn is_faithful(&self) -> bool {
        self.fidelity.as_ref().is_some_and(|f| f.faithful)
    }

    /// How faithful it was, in words, and why not if it was not.
    #[must_use]
    pub fn fidelity(&self) -> String {
        let Some(fidelity) = &self.fidelity else {
            return "NOT faithful: it was not measured".to_owned();
        };
        let worst = fidelity
            .worst_share_error
            .map_or(String::new(), |e| format!(" (worst share error {:.1} %)", e * 100.0));
        if fidelity.faithful {
            format!("faithful{worst}")
        } else {
            let why = fidelity.notes.join("; ");
            format!("NOT faithful{worst}{}{why}", if why.is_empty() { "" } else { ": " })
        }
    }

    /// The virtual runs of its cell, if there are any here.
    pub(crate) fn against(&self, results: &Results) -> Option<Against> {
        let (_, samples) = results.all.iter().find(|(t, _)| t.case() == self.case())?;
        let seeded = usize::try_from(self.seed.checked_sub(1)?).ok();
        let same = seeded
            .and_then(|n| samples.get(n))
            .and_then(|sample| Some((sample.makespan?.as_secs_f64(), sample.cost.as_usd())));
        let (makespan, cost) = (Estimate::of(&makespans(samples))?, Estimate::of(&costs(samples))?);
        Some(Against { same, makespan, cost })
    }
}

/// Virtual runs that a live run is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Against {
    /// Makespan and cost under the same seed.
    pub(crate) same: Option<(f64, f64)>,
    /// Over all seeds.
    pub(crate) makespan: Estimate,
    /// Over all seeds.
    pub(crate) cost: Estimate,
}
