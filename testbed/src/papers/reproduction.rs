//! From what is asked for to its folder: runs, figures, claims, factors, files.

use std::path::{Path, PathBuf};

use super::claims::{Judged, judge_all};
use super::figures::{Row, rows};
use super::live::{Against, LiveRun, MakeLive};
use super::paper::{Factor, Paper, Part};
use super::pattern::matches;
use super::readings::{Reading, Runs, readings as search_readings};
use super::results::Results;
use super::trials::{Trial, Trials};
use super::{named, report};
use crate::experiment::InputError;
use crate::sweep::{Cell, Folder, Shard, Shared, Spec, SweepError, Work};

/// How to reproduce, beside the [`Spec`].
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
}

/// Everything that came out.
#[derive(Debug)]
pub struct Finished {
    /// The paper.
    pub paper: Paper,
    /// What of it, such as `burst-hads/table-4`.
    pub what: String,
    /// The command that makes the same again.
    pub command: String,
    /// The parts that were asked for, by name.
    pub parts: Vec<String>,
    /// The cells, and the command that makes the figures of each by itself.
    pub cells: Vec<(String, String)>,
    /// The samples.
    pub results: Results,
    /// Every figure.
    pub rows: Vec<Row>,
    /// Every claim.
    pub claims: Vec<Judged>,
    /// Every factor, the experiments without any first; none, if none was tried.
    pub trials: Vec<Trial>,
    /// The readings that explain most, ours first; none, if none was looked for.
    pub read: Vec<Reading>,
    /// What is left out, and what it needs.
    pub without: Vec<(String, String)>,
    /// The live runs.
    pub live: Vec<(LiveRun, Option<Against>)>,
    /// Charts of single runs: their names and files.
    pub charts: Vec<(String, String)>,
}

impl Finished {
    /// Its parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.paper.parts.iter().filter(|part| self.parts.contains(&part.name))
    }
}

/// What all experiments of a reproduction have in common.
struct Base<'a> {
    paper: &'a Paper,
    readings: Vec<&'a Factor>,
    set: &'a [String],
    of_cells: &'a [(String, String)],
}

impl<'a> Base<'a> {
    fn of(
        paper: &'a Paper,
        readings: &[String],
        set: &'a [String],
        of_cells: &'a [(String, String)],
    ) -> Result<Self, SweepError> {
        let named = |name: &String| {
            let unknown = || {
                let known: Vec<&str> = paper.factors.iter().map(|f| f.name.as_str()).collect();
                let known = known.join(", ");
                SweepError::BadInput(format!("{name}: there is no such reading; give {known}"))
            };
            paper.factor(name).ok_or_else(unknown)
        };
        let readings = readings.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Self { paper, readings, set, of_cells })
    }

    /// What is set of a cell: presets, then what the user sets, then other readings.
    fn settings(&self, case: &str) -> Vec<String> {
        let of = |preset: bool| {
            let readings = self.readings.iter().filter(move |factor| factor.preset == preset);
            readings.flat_map(|factor| self.paper.settings(factor, case))
        };
        let mut all: Vec<String> =
            of(true).chain(self.set.iter().cloned()).chain(of(false)).collect();
        all.extend(self.chosen(self.of_cells, case));
        all
    }

    fn chosen(&self, of_cells: &[(String, String)], case: &str) -> Vec<String> {
        let fits = of_cells.iter().filter(|(of, _)| matches(of, case, &self.paper.lists));
        fits.map(|(_, set)| set.clone()).collect()
    }

    fn cell(&self, case: &str) -> Result<Cell, InputError> {
        self.paper.cell(case, &self.settings(case))
    }
}

impl Request {
    /// All runs, on so many threads, nothing live.
    #[must_use]
    pub const fn new(threads: usize) -> Self {
        Self { threads, compute: Some(Shard::ALL), live: Vec::new(), make_live: None }
    }

    /// Makes the runs that `spec` wants into `folder` and, unless it is a shard, everything that
    /// is made of them. What another command left there is replaced only with `force`. `progress` is
    /// told the stage and how many of how many runs are done.
    ///
    /// # Errors
    ///
    /// What is asked for makes no sense, a run can't be made, or the system refuses.
    pub fn run(
        &self,
        spec: &Spec,
        (folder, force): (&Path, bool),
        progress: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Option<Finished>, SweepError> {
        // Nothing is made before what is asked for is known to be right.
        let shared = Shared::default();
        let (paper, parts, cells) = cells(spec, &shared)?;
        drop(cells);
        if let Some(part) = parts.iter().find(|part| !part.search.is_empty())
            && self.compute.is_some_and(Shard::is_part)
        {
            return Err(SweepError::BadInput(format!(
                "{}/{}: a search can't be made in parts, since what it tries depends on what it found; \
                 leave out --shard",
                paper.name, part.name
            )));
        }
        for folder in &self.live {
            LiveRun::read(folder)?;
        }
        self.run_in(spec, &shared, &mut Folder::open(folder, spec, force)?, progress)
    }

    /// Takes the parts of one command together, of which all runs are there.
    ///
    /// # Errors
    ///
    /// As [`Self::run`], or runs are missing.
    pub fn merge(
        &self,
        parts: &[PathBuf],
        (folder, force): (&Path, bool),
        progress: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Option<Finished>, SweepError> {
        let (mut folder, spec) = Folder::merge(folder, parts, force)?;
        let request = Self { compute: None, ..self.clone() };
        request.run_in(&spec, &Shared::default(), &mut folder, progress)
    }

    fn run_in(
        &self,
        spec: &Spec,
        shared: &Shared,
        folder: &mut Folder,
        progress: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Option<Finished>, SweepError> {
        let Spec::Reproduce {
            what,
            first_seed,
            seeds,
            trial_seeds,
            trial_set,
            readings,
            set,
            of_cells,
            without,
            ..
        } = spec
        else {
            return Err(SweepError::BadInput("this is no reproduction of a paper".to_owned()));
        };
        let (paper, parts, cells) = cells(spec, shared)?;
        let until = |count: u64| *first_seed..=first_seed + count.max(1) - 1;
        let work =
            Work { seeds: until(*seeds), threads: self.threads, compute: self.compute, shared };
        let samples = work.run(&cells, folder, &mut |n, of| progress("runs", n, of))?;
        if self.compute.is_some_and(Shard::is_part) {
            return Ok(None);
        }
        let cases = cells.iter().map(|cell| cell.case.clone());
        let results = Results::new(cases.zip(samples));
        let parts: Vec<&Part> = parts.iter().collect();
        let (rows, claims) = (rows(&paper, &parts, &results), judge_all(&paper, &results));

        // Factors are tried where everything comes together, whatever the shards.
        let base = Base::of(&paper, readings, set, of_cells)?;
        let settings = |case: &str| [base.settings(case), base.chosen(trial_set, case)].concat();
        let all_of = |count: u64| Work {
            seeds: until(count),
            threads: self.threads,
            compute: Some(Shard::ALL),
            shared,
        };
        let (mut trials, mut read) = (Vec::new(), Vec::new());
        let mut tried: Vec<(Vec<Cell>, u64)> = Vec::new();
        if let Some(part) = parts.iter().find(|part| !part.search.is_empty()) {
            read = search_readings(&paper, part, settings, |cells, runs| {
                let count = if runs == Runs::Few { *trial_seeds } else { *seeds };
                let mut progress = |n, of| progress("readings", n, of);
                let samples = all_of(count).run(&cells, folder, &mut progress)?;
                tried.push((cells, count));
                Ok(samples)
            })?;
        } else if *trial_seeds > 0 {
            let all = Trials::of(&paper, &parts, (&rows, &claims), settings)?;
            let mut progress = |n, of| progress("factors", n, of);
            let samples = all_of(*trial_seeds).run(&all.cells, folder, &mut progress)?;
            trials = all.judged(&samples);
            tried.push((all.cells, *trial_seeds));
        }

        let mut live = self.live.clone();
        if let Some(make) = &self.make_live {
            let patterns: Vec<String> = paper.live.iter().flat_map(|p| paper.expand(p)).collect();
            let cells: Vec<&Cell> = cells.iter().filter(|c| patterns.contains(&c.case)).collect();
            live.extend(make.make(&cells, folder.path(), progress)?);
        }
        let live = live.iter().map(|dir| LiveRun::read(dir)).collect::<Result<Vec<_>, _>>()?;
        let live = live.into_iter().map(|run| {
            let against = run.against(&results, *first_seed);
            (run, against)
        });
        let charts = charts(&parts, &paper, (&cells, *first_seed), &results, shared, folder)?;
        let done = Finished {
            what: what.clone(),
            command: spec.command(),
            parts: parts.iter().map(|part| part.name.clone()).collect(),
            cells: cells.iter().map(|c| (c.case.clone(), c.command(&until(*seeds)))).collect(),
            live: live.collect(),
            results,
            rows,
            claims,
            trials,
            read,
            without: without.clone(),
            charts,
            paper,
        };
        report::write(&done, folder)?;
        let all = std::iter::once((&cells, *seeds)).chain(tried.iter().map(|(c, n)| (c, *n)));
        folder.settle(all.flat_map(|(cells, count)| {
            cells.iter().flat_map(move |cell| until(count).map(move |seed| (cell, seed)))
        }))?;
        Ok(Some(done))
    }
}

/// The cells that are asked for, of which parts of which paper.
fn cells(spec: &Spec, shared: &Shared) -> Result<(Paper, Vec<Part>, Vec<Cell>), SweepError> {
    let Spec::Reproduce { what, first_seed, readings, set, of_cells, without, .. } = spec else {
        return Err(SweepError::BadInput("this is no reproduction of a paper".to_owned()));
    };
    let (paper, part) = named(what)?;
    let parts: Vec<Part> = paper.parts(part.as_deref()).into_iter().cloned().collect();
    let base = Base::of(&paper, readings, set, of_cells)?;
    let (mut cells, mut seen) = (Vec::<Cell>::new(), std::collections::BTreeSet::new());
    for case in parts.iter().flat_map(|part| paper.cells_of(part)) {
        let left_out = without.iter().any(|(of, _)| matches(of, &case, &paper.lists));
        if !left_out && seen.insert(case.clone()) {
            let cell = base.cell(&case)?;
            cell.check(*first_seed, shared)?;
            cells.push(cell);
        }
    }
    match without.first() {
        Some((_, needs)) if cells.is_empty() => {
            Err(SweepError::BadInput(format!("{what}: {needs}")))
        }
        _ => Ok((paper, parts, cells)),
    }
}

/// The chart of each cell's run with the median makespan: its name and its file.
fn charts(
    parts: &[&Part],
    paper: &Paper,
    (cells, first_seed): (&[Cell], u64),
    results: &Results,
    shared: &Shared,
    folder: &Folder,
) -> Result<Vec<(String, String)>, SweepError> {
    let mut made = Vec::new();
    for case in parts.iter().filter(|part| part.gantt).flat_map(|part| paper.cells_of(part)) {
        let (Some(cell), Some(samples)) =
            (cells.iter().find(|cell| cell.case == case), results.samples(&case))
        else {
            continue;
        };
        let makespan = |n: &usize| samples[*n].figure("makespan_s").unwrap_or(f64::NEG_INFINITY);
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_by(|a, b| makespan(a).total_cmp(&makespan(b)).then(a.cmp(b)));
        let Some(median) = order.get((order.len().max(1) - 1) / 2) else { continue };
        let seed = first_seed + *median as u64;
        let file = format!("gantt/{}.svg", case.replace('/', "-"));
        folder.write(&file, &cell.gantt(seed, shared)?)?;
        made.push((format!("{case}, seed {seed}"), file));
    }
    Ok(made)
}
