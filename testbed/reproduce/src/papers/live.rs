//! Live runs beside the virtual ones: existing ones, and new ones that are made one after another
//! as child processes.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use dormouse_analysis::RunTally;
use dormouse_estimate::Estimate;

use super::paper::PaperEvaluation;
use super::progress::Progress;
use super::results::CellResults;
use crate::sweep::{SweepCell, SweepError};
use dormouse_report::output::{RunLog, read_header};

/// A live run, from its `summary.json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LiveRun {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the scheduler.
    pub scheduler: String,
    mode: String,
    /// Seed of the run.
    pub seed: u64,
    /// Makespan in emulated seconds; `None` if not all tasks finished.
    pub makespan_s: Option<f64>,
    /// Cost in dollars; `None` if nothing is bought.
    pub cost_usd: Option<f64>,
    fidelity: Option<FidelityField>,
    /// Figures by their names in `table.csv`, computed from the run's log like those of virtual runs.
    #[serde(skip)]
    figures: BTreeMap<String, f64>,
    /// Name of the cell that the run belongs to; if empty, the cell of the run's experiment and scheduler.
    #[serde(skip)]
    cell: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct FidelityField {
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
    /// It is not a folder of a live run.
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

    /// Reads the folder of a run, with every figure that a virtual run of its experiment has.
    ///
    /// # Errors
    ///
    /// It is not a folder of a live run, or its log can't be read.
    pub fn with_figures(folder: &Path) -> Result<Self, SweepError> {
        let run = Self::read(folder)?;
        let said = [("makespan_s", run.makespan_s), ("cost_usd", run.cost_usd)];
        let said = said.into_iter().filter_map(|(name, x)| Some((name.to_owned(), x?)));
        let figures = figures_of_log(folder)?.unwrap_or_else(|| said.collect());
        Ok(Self { figures, ..run })
    }

    /// A figure of the run by its name in `table.csv`; `None` if the run has no such figure.
    #[must_use]
    pub fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.get(metric).copied()
    }

    /// Assigns the run to this cell.
    pub(super) fn of_cell(self, cell: String) -> Self {
        Self { cell, ..self }
    }

    /// Name of the cell that the run belongs to.
    #[must_use]
    pub fn case(&self) -> String {
        match self.cell.is_empty() {
            true => format!("{}/{}", self.experiment, self.scheduler),
            false => self.cell.clone(),
        }
    }

    /// The run's fidelity in words, with the reasons if it was not faithful.
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

    /// Figures of the run to show: those that the paper's parts report for the run's cell, or else makespan and cost.
    pub(super) fn shown_figures(
        &self,
        paper: &PaperEvaluation,
        parts: &[&super::paper::PaperPart],
    ) -> Vec<(String, f64)> {
        let case = self.case();
        let of_part = parts.iter().filter(|part| paper.cells_of(part).contains(&case));
        let mut names: Vec<String> = of_part
            .flat_map(|part| paper.of_case(&part.metrics, &case).cloned().collect::<Vec<_>>())
            .collect();
        if names.is_empty() {
            names = ["makespan_s", "cost_usd"].map(str::to_owned).to_vec();
        }
        names.into_iter().filter_map(|name| Some((name.clone(), self.figure(&name)?))).collect()
    }

    /// The figure `metric` in the virtual runs of this run's cell, whose seeds begin with `first_seed`, for comparison;
    /// `None` if no virtual run has it.
    pub(super) fn against(
        &self,
        metric: &str,
        (results, first_seed): (&CellResults, u64),
    ) -> Option<VirtualFigure> {
        let case = self.case();
        let samples = results.samples(&case)?;
        let seeded = usize::try_from(self.seed.checked_sub(first_seed)?).ok();
        let same = seeded.and_then(|n| samples.get(n)).and_then(|sample| sample.figure(metric));
        Some(VirtualFigure { same, all: results.ours(&case, metric)? })
    }
}

/// Figures of a run from its log; `None` if the log has no steps.
fn figures_of_log(folder: &Path) -> Result<Option<BTreeMap<String, f64>>, SweepError> {
    let broken = |error: &dyn Display| {
        let remedy = "give the folder of a live run that was left whole";
        SweepError::BadInput(format!("{}: {error}; {remedy}", folder.display()))
    };
    let Ok(log) = RunLog::read(folder) else { return Ok(None) };
    let Some(steps) = log.steps.filter(|steps| !steps.is_empty()) else { return Ok(None) };
    let experiment = &log.header.experiment;
    let scheduler = experiment.scheduler().map_err(|error| broken(&error))?;
    let mut run = experiment.run(scheduler);
    let mut tally = RunTally::new(&experiment.whole_setup(), experiment.tenants(), None);
    for step in &steps {
        let (again, _) = run.handle_again(step);
        tally.see(&again);
    }
    let processors = experiment.jobs.as_ref().map_or(0, |batch| batch.workload.processors);
    Ok(Some(tally.sample(&run, processors).figures))
}

/// A figure of virtual runs, to compare a live run with.
#[derive(Clone, Copy, Debug)]
pub struct VirtualFigure {
    /// The figure of the virtual run with the live run's seed; `None` if that run is missing or lacks the figure.
    pub same: Option<f64>,
    /// The figure over all seeds.
    pub all: Estimate,
}

/// A request for live runs.
#[derive(Clone, Debug)]
pub struct MakeLive {
    /// Number of live runs of each cell, with seeds from 1 on.
    pub seeds: u64,
    /// Program that makes the runs: `dormouse`, or one with the same `run --live`.
    pub program: PathBuf,
}

impl MakeLive {
    /// Makes the live runs that `folder` does not have yet, and returns all with the figures from
    /// their logs.
    pub(super) fn make(
        &self,
        cells: &[&SweepCell],
        folder: &Path,
        progress: Progress<'_>,
    ) -> Result<Vec<LiveRun>, SweepError> {
        let all: Vec<_> =
            cells.iter().flat_map(|&c| (1..=self.seeds).map(move |seed| (c, seed))).collect();
        let mut runs = Vec::new();
        for (n, &(cell, seed)) in all.iter().enumerate() {
            progress("live runs", n, all.len());
            let out = folder.join("live").join(format!("{}-s{seed}", cell.case.replace('/', "-")));
            if !is_there(&out, cell, seed) {
                self.run(cell, seed, &out)?;
            }
            runs.push(LiveRun::with_figures(&out)?.of_cell(cell.case.clone()));
        }
        progress("live runs", all.len(), all.len());
        Ok(runs)
    }

    fn run(&self, cell: &SweepCell, seed: u64, out: &Path) -> Result<(), SweepError> {
        let scheduler = cell.experiment.scheduler_name();
        let is_named = cell.set.iter().any(|set| set.starts_with("scheduler.name="));
        // The experiment's speed-up is used whatever this host is calibrated for, so that runs are
        // comparable.
        let speedup = format!("live.speedup={}", cell.experiment.live.speedup);
        let named = |set: &&String| !set.starts_with("scheduler.name=");
        let set = cell.set.iter().filter(named).chain([&speedup]);
        let mut command = Command::new(&self.program);
        command.args(["run", &cell.name, "--live", "--quiet"]);
        command.args(["--seed", &seed.to_string()]);
        if is_named {
            command.args(["--scheduler", &*scheduler]);
        }
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

/// Whether the folder `out` has a finished live run of exactly this experiment with this seed.
fn is_there(out: &Path, cell: &SweepCell, seed: u64) -> bool {
    let finished = LiveRun::read(out).is_ok_and(|run| run.makespan_s.is_some());
    let mut wanted = cell.experiment.clone();
    wanted.seed(seed);
    finished && read_header(out).is_ok_and(|header| header.experiment == wanted)
}
