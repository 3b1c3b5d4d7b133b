//! Live runs beside the virtual ones: those that are there, and those that are made, one after
//! another, as children of this program.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use dormouse_estimate::Estimate;

use super::progress::Progress;
use super::results::Results;
use crate::sweep::{Cell, SweepError};
use dormouse_report::output::read_header;

/// What is taken from the `summary.json` of a live run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LiveRun {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the scheduler.
    pub scheduler: String,
    mode: String,
    /// Seed of the run.
    pub seed: u64,
    /// Emulated seconds; `None`: not all tasks were finished.
    pub makespan_s: Option<f64>,
    /// Cost of the run, dollars.
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
        let unusable = |why| SweepError::BadInput(format!("{}: {why}", path.display()));
        let other =
            |error: &dyn Display| unusable(format!("{error}; give the folder of a live run"));
        let text = std::fs::read_to_string(&path).map_err(|error| other(&error))?;
        let run: Self = serde_json::from_str(&text).map_err(|error| other(&error))?;
        match &*run.mode {
            "live" => Ok(run),
            mode => Err(unusable(format!("it is a {mode} run; give one made with --live"))),
        }
    }

    /// The cell it belongs to.
    pub fn case(&self) -> String {
        format!("{}/{}", self.experiment, self.scheduler)
    }

    /// How faithful it was, in words, and why not if it was not.
    pub fn fidelity(&self) -> String {
        let Some(fidelity) = &self.fidelity else {
            return "NOT faithful: it was not measured".to_owned();
        };
        let worst =
            fidelity.worst_share_error.map(|e| format!(" (worst share error {:.1} %)", e * 100.0));
        let worst = worst.unwrap_or_default();
        match (fidelity.faithful, fidelity.notes.join("; ")) {
            (true, _) => format!("faithful{worst}"),
            (false, why) if why.is_empty() => format!("NOT faithful{worst}"),
            (false, why) => format!("NOT faithful{worst}: {why}"),
        }
    }

    /// The virtual runs of its cell, if there are any here, under seeds from `first_seed` on.
    pub(super) fn against(&self, results: &Results, first_seed: u64) -> Option<Against> {
        let case = self.case();
        let samples = results.samples(&case)?;
        let seeded = usize::try_from(self.seed.checked_sub(first_seed)?).ok();
        let same = seeded.and_then(|n| samples.get(n));
        let same = same.and_then(|s| Some((s.figure("makespan_s")?, s.figure("cost_usd")?)));
        let of = |metric| results.ours(&case, metric);
        Some(Against { same, makespan: of("makespan_s")?, cost: of("cost_usd")? })
    }
}

/// Virtual runs that a live run is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Against {
    /// Makespan and cost under the same seed.
    pub same: Option<(f64, f64)>,
    /// Over all seeds.
    pub makespan: Estimate,
    /// Over all seeds.
    pub cost: Estimate,
}

/// Live runs that are wanted.
#[derive(Clone, Debug)]
pub struct MakeLive {
    /// Number of live runs of each cell: seeds 1 to this.
    pub seeds: u64,
    /// The program that makes one: `dormouse`, or what takes its `run --live`.
    pub program: PathBuf,
}

impl MakeLive {
    /// Makes those that `folder` does not hold yet, and gives the folders of all.
    pub(super) fn make(
        &self,
        cells: &[&Cell],
        folder: &Path,
        progress: Progress<'_>,
    ) -> Result<Vec<PathBuf>, SweepError> {
        let all: Vec<_> =
            cells.iter().flat_map(|&c| (1..=self.seeds).map(move |seed| (c, seed))).collect();
        let mut folders = Vec::new();
        for (n, &(cell, seed)) in all.iter().enumerate() {
            progress("live runs", n, all.len());
            let out = folder.join("live").join(format!("{}-s{seed}", cell.case.replace('/', "-")));
            if !is_there(&out, cell, seed) {
                self.run(cell, seed, &out)?;
            }
            folders.push(out);
        }
        progress("live runs", all.len(), all.len());
        Ok(folders)
    }

    fn run(&self, cell: &Cell, seed: u64, out: &Path) -> Result<(), SweepError> {
        let scheduler = cell.experiment.scheduler_name();
        // Whatever this host is calibrated to do: runs are to be compared.
        let speedup = format!("live.speedup={}", cell.experiment.live.speedup);
        let named = |set: &&String| !set.starts_with("scheduler.name=");
        let set = cell.set.iter().filter(named).chain([&speedup]);
        let mut command = Command::new(&self.program);
        command.args(["run", &cell.name, "--live", "--quiet"]);
        command.args(["--seed", &seed.to_string(), "--scheduler", &scheduler]);
        command.args(set.flat_map(|text| ["--set", text]));
        command.arg("--out").arg(out).stdin(Stdio::null()).stdout(Stdio::null());
        let ended = command
            .stderr(Stdio::piped())
            .output()
            .map_err(SweepError::io("run", &self.program))?;
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let why = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let (case, status, why) = (&cell.case, ended.status, why.trim());
        Err(SweepError::Live(format!("{case}, seed {seed}, ended with {status}: {why}")))
    }
}

/// Whether a finished live run of this very experiment is there.
fn is_there(out: &Path, cell: &Cell, seed: u64) -> bool {
    let finished = LiveRun::read(out).is_ok_and(|run| run.makespan_s.is_some());
    let mut wanted = cell.experiment.clone();
    wanted.seed(seed);
    finished && read_header(out).is_ok_and(|header| header.experiment == wanted)
}
