//! Finished live runs, to be drawn beside the virtual ones.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::sweep::SweepError;

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
}
