//! From a request to its folder.

use std::path::{Path, PathBuf};

use super::causes::Trials;
use super::claims::claims;
use super::compare::rows;
use super::factors::{ARTIFACT_T3, EMULATED, SPOT_TYPES};
use super::live::Against;
use super::readings::Readings;
use super::text::{csv, table};
use super::{Cause, Claim, LiveRun, MakeLive, Reading, Results, Row, Target, page};
use crate::command_line::command_line;
use crate::experiment::InputError;
use crate::output::Style;
use crate::sweep::{Cell, Folder, Plans, Sample, Shard, Spec, SweepError, Work};

/// What is asked for, beside the [`Spec`].
#[derive(Clone, Debug)]
pub struct Request {
    /// On so many threads.
    pub threads: usize,
    /// Which runs to make; `None`: all have to be in the folder.
    pub compute: Option<Shard>,
    /// Folders of live runs to compare with.
    pub live: Vec<PathBuf>,
    /// Live runs to make, into the folder, and to compare with.
    pub make_live: Option<MakeLive>,
    /// Replace the results of another command in the folder.
    pub force: bool,
}

/// Everything that came out.
#[derive(Debug)]
pub struct Finished {
    pub(crate) what: String,
    pub(crate) command: String,
    pub(crate) seeds: u64,
    /// The samples.
    pub results: Results,
    /// Every figure.
    pub rows: Vec<Row>,
    /// Every claim.
    pub claims: Vec<Claim>,
    /// The deviating figures, each with what brings it nearer.
    pub causes: Vec<Cause>,
    /// What comes out if the text is read otherwise.
    pub readings: Vec<Reading>,
    pub(crate) live: Vec<(LiveRun, Option<Against>)>,
}

impl Finished {
    pub(crate) fn live_runs(&self) -> Vec<LiveRun> {
        self.live.iter().map(|(run, _)| run.clone()).collect()
    }

    /// For a person.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        table(self, style)
    }
}

/// What can be reproduced.
const KNOWN: &str = "burst-hads, burst-hads/table-4 or burst-hads/table-6";

fn targets(what: &str) -> Result<Vec<Target>, SweepError> {
    match what {
        "burst-hads" => Ok([Target::table_4(), Target::table_6()].concat()),
        "burst-hads/table-4" => Ok(Target::table_4()),
        "burst-hads/table-6" => Ok(Target::table_6()),
        other => Err(SweepError::BadInput(format!(
            "{other}: there is no such paper or table; give {KNOWN}"
        ))),
    }
}

fn settings(preset: &str, set: &[String]) -> Result<Vec<String>, SweepError> {
    let preset = match preset {
        "paper" => vec![],
        "artifact" => vec!["scheduler.preset=artifact".to_owned(), ARTIFACT_T3.to_owned()],
        other => {
            let what = format!("--preset {other}: there is no such preset; give paper or artifact");
            return Err(SweepError::BadInput(what));
        }
    };
    Ok([preset, set.to_vec()].concat())
}

/// How much rarer than λ of each type the events are.
fn rarer(events: &str) -> Result<f64, SweepError> {
    match events {
        "type" => Ok(1.0),
        "emulated" => Ok(EMULATED),
        "market" => Ok(SPOT_TYPES),
        other => Err(SweepError::BadInput(format!(
            "--events {other}: give type (k counts the events of each spot type), market (of all \
             together) or emulated (of each type, half as often: fitted to Table VI's counts)"
        ))),
    }
}

/// What every cell of a reproduction has in common.
#[derive(Debug)]
pub(crate) struct Base {
    set: Vec<String>,
    rarer: f64,
}

impl Base {
    fn of(preset: &str, events: &str, set: &[String]) -> Result<Self, SweepError> {
        Ok(Self { set: settings(preset, set)?, rarer: rarer(events)? })
    }

    /// The settings of a cell.
    pub(crate) fn settings(&self, target: &Target) -> Vec<String> {
        let mut all = self.set.clone();
        if self.rarer > 1.0 {
            all.extend(target.events(self.rarer));
        }
        all
    }

    /// A cell with these settings besides.
    pub(crate) fn cell(
        &self,
        target: &Target,
        suffix: &str,
        more: &[String],
    ) -> Result<Cell, InputError> {
        target.cell(suffix, &[self.settings(target), more.to_vec()].concat())
    }
}

impl Request {
    /// All runs, on so many threads, nothing live.
    #[must_use]
    pub const fn new(threads: usize) -> Self {
        Self { threads, compute: Some(Shard::ALL), live: Vec::new(), make_live: None, force: false }
    }

    /// Makes the runs that `spec` wants into `folder` and, unless it is a shard, everything that
    /// is made of them. `progress` is told the stage and how many of how many runs are done.
    ///
    /// # Errors
    ///
    /// What is asked for makes no sense, a run can't be made, or the system refuses.
    pub fn run(
        &self,
        spec: &Spec,
        folder: &Path,
        progress: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Option<Finished>, SweepError> {
        self.check(spec)?;
        self.run_in(spec, &mut Folder::open(folder, spec, self.force)?, progress)
    }

    /// Whether it makes sense, before anything is made.
    fn check(&self, spec: &Spec) -> Result<(), SweepError> {
        if let Spec::Reproduce { what, preset, events, set, .. } = spec {
            let base = Base::of(preset, events, set)?;
            for target in targets(what)? {
                base.cell(&target, "", &[])?;
            }
        }
        for folder in &self.live {
            LiveRun::read(folder)?;
        }
        Ok(())
    }

    /// As [`Request::run`], with a folder already open.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run_in(
        &self,
        spec: &Spec,
        folder: &mut Folder,
        progress: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Option<Finished>, SweepError> {
        let Spec::Reproduce { what, preset, seeds, cause_seeds, events, set } = spec else {
            return Err(SweepError::BadInput(format!("not a reproduction; give {KNOWN}")));
        };
        let base = Base::of(preset, events, set)?;
        let targets = targets(what)?;
        let cells: Vec<_> =
            targets.iter().map(|t| base.cell(t, "", &[])).collect::<Result<_, _>>()?;
        let plans = Plans::default();
        let work =
            Work { seeds: *seeds, threads: self.threads, compute: self.compute, plans: &plans };
        let samples = work.run(&cells, folder, &mut |n, of| progress("runs", n, of))?;
        if self.compute.is_some_and(Shard::is_part) {
            return Ok(None);
        }
        let results = Results { all: targets.iter().cloned().zip(samples).collect() };
        let rows = rows(&results);
        // The causes are looked for where everything comes together, whatever the shards.
        let cause_work = Work { seeds: *cause_seeds, compute: Some(Shard::ALL), ..work };
        let (mut trials, mut causes) = (Trials::default(), Vec::new());
        let (mut others, mut readings) = (None, Vec::new());
        if *cause_seeds > 0 {
            let mut run = |cells: &[Cell], folder: &mut Folder| {
                cause_work.run(cells, folder, &mut |n, of| progress("causes", n, of))
            };
            trials = Trials::of(&results, &rows, &base)?;
            let samples = run(trials.wanted(), folder)?;
            trials.take(samples);
            trials.pairs(&results, &base)?;
            let samples = run(trials.wanted(), folder)?;
            trials.take(samples);
            causes = trials.causes(&results);
            others = Readings::of(&targets, &base)?;
            if let Some(others) = &others {
                readings = others.made(&run(&others.cells, folder)?);
            }
        }
        let claims = claims(&results);
        let mut live = self.live.clone();
        if let Some(make) = &self.make_live {
            live.extend(make.make(&targets, &base, folder.path(), progress)?);
        }
        let live = live.iter().map(|dir| LiveRun::read(dir)).collect::<Result<Vec<_>, _>>()?;
        let live = live.into_iter().map(|run| {
            let against = run.against(&results);
            (run, against)
        });
        let done = Finished {
            what: what.clone(),
            command: command(spec),
            seeds: *seeds,
            live: live.collect(),
            results,
            rows,
            claims,
            causes,
            readings,
        };
        let gantts = gantts(&cells, &done.results, &plans, folder)?;
        folder.write("table.csv", &csv(&done.rows))?;
        folder.write("report.html", &page::page(&done, &gantts))?;
        let wanted = |cells: &'_ [Cell], seeds: u64| -> Vec<(Cell, u64)> {
            cells.iter().flat_map(|c| (1..=seeds).map(|s| (c.clone(), s))).collect()
        };
        let others = others.map(|others| others.cells).unwrap_or_default();
        let mut all = wanted(&cells, *seeds);
        all.extend(wanted(&trials.cells, *cause_seeds));
        all.extend(wanted(&others, *cause_seeds));
        folder.settle(all.iter().map(|(cell, seed)| (cell, *seed)))?;
        Ok(Some(done))
    }
}

/// The chart of each cell's median run: its name and its file.
fn gantts(
    cells: &[Cell],
    results: &Results,
    plans: &Plans,
    folder: &Folder,
) -> Result<Vec<(String, String)>, SweepError> {
    let mut made = Vec::new();
    for (cell, (target, samples)) in cells.iter().zip(&results.all) {
        let Some(seed) = median_seed(samples) else { continue };
        let file = format!("gantt/{}.svg", target.case().replace('/', "-"));
        folder.write(&file, &cell.gantt(seed, plans)?)?;
        made.push((format!("{}, seed {seed}", target.case()), file));
    }
    Ok(made)
}

/// The seed, from 1, of the run with the median makespan.
fn median_seed(samples: &[Sample]) -> Option<u64> {
    let mut all: Vec<_> = samples.iter().map(|s| s.makespan).zip(1..).collect();
    all.sort();
    all.get((all.len().max(1) - 1) / 2).map(|&(_, seed)| seed)
}

fn command(spec: &Spec) -> String {
    let Spec::Reproduce { what, preset, seeds, cause_seeds, events, set } = spec else {
        return String::new();
    };
    let (seeds, cause_seeds) = (seeds.to_string(), cause_seeds.to_string());
    let mut words = vec!["dormouse", "reproduce", what];
    for (option, value) in [
        ("--seeds", &seeds),
        ("--preset", preset),
        ("--events", events),
        ("--cause-seeds", &cause_seeds),
    ] {
        words.extend([option, value]);
    }
    for setting in set {
        words.extend(["--set", setting]);
    }
    command_line(words)
}
