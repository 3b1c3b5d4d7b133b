//! Live runs, made one after another as children of this program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dormouse_policies::BagSchedulerName::BurstHads;

use super::run::Base;
use super::{LiveRun, Target};
use crate::output::read_header;
use crate::sweep::{Cell, SweepError};

/// The cells that are run live: without hibernations, and with most.
const CELLS: [(&str, Option<&str>); 2] = [("j60", None), ("j60", Some("sc2"))];

/// Live runs that are wanted.
#[derive(Clone, Debug)]
pub struct MakeLive {
    /// Of each cell under seeds 1 to this.
    pub seeds: u64,
    /// The program that makes one: `dormouse`, or what takes its `run --live`.
    pub program: PathBuf,
}

impl MakeLive {
    /// Makes those that `folder` does not hold yet, and gives the folders of all.
    ///
    /// # Errors
    ///
    /// An experiment is wrong, or a run can't be made.
    pub(crate) fn make(
        &self,
        targets: &[Target],
        base: &Base,
        folder: &Path,
        progress: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Vec<PathBuf>, SweepError> {
        let live = |t: &&Target| t.scheduler == BurstHads && CELLS.contains(&(t.job, t.scenario));
        let targets: Vec<_> = targets.iter().filter(live).collect();
        let all: Vec<_> =
            targets.iter().flat_map(|&t| (1..=self.seeds).map(move |seed| (t, seed))).collect();
        let mut folders = Vec::new();
        for (n, &(target, seed)) in all.iter().enumerate() {
            progress("live", n, all.len());
            let name = format!("{}-s{seed}", target.case().replace('/', "-"));
            let out = folder.join("live").join(name);
            let cell = base.cell(target, "", &[])?;
            if !is_there(&out, &cell, seed) {
                // Whatever this host is calibrated to do: runs are to be compared.
                let speedup = format!("live.speedup={}", cell.experiment.live.speedup);
                let set = [base.settings(target), vec![speedup]].concat();
                self.run(target, seed, &set, &out)?;
            }
            folders.push(out);
        }
        progress("live", all.len(), all.len());
        Ok(folders)
    }

    fn run(
        &self,
        target: &Target,
        seed: u64,
        set: &[String],
        out: &Path,
    ) -> Result<(), SweepError> {
        let mut command = Command::new(&self.program);
        command.args(["run", &target.experiment(), "--live", "--quiet"]);
        command.args(["--seed", &seed.to_string(), "--scheduler", target.scheduler.as_str()]);
        command.args(set.iter().flat_map(|text| ["--set", text]));
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
        let why = why.trim().to_owned();
        Err(SweepError::Live { case: target.case(), seed, status: ended.status, why })
    }
}

/// Whether a finished live run of this very experiment is there.
fn is_there(out: &Path, cell: &Cell, seed: u64) -> bool {
    let finished = LiveRun::read(out).is_ok_and(|run| run.makespan_s.is_some());
    let mut wanted = cell.experiment.clone();
    wanted.setup.seed = seed;
    finished && read_header(out).is_ok_and(|header| header.experiment == wanted)
}
