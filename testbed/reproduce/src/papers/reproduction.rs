//! Makes a reproduction: runs, figures, claims, factors, files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::closer::{look_closer, settings_in_words};
use super::factor::ReadingFactor;
use super::finished::FinishedReproduction;
use super::input_files::InputFile;
use super::live::{LiveRun, MakeLive};
use super::origin::OriginClock;
use super::own::{CellComputation, RecordedInputs};
use super::paper::{PaperEvaluation, PaperPart};
use super::pattern::{matches, unique};
use super::price_notes;
use super::progress::Progress;
use super::readings::{PaperReading, ReadingMaker, check_seeds};
use super::results::CellResults;
use super::{asked as asked_paper, own_readings, report};
use crate::sweep::{
    FolderSpec, ReproductionSpec, SharedInputs, SweepCell, SweepError, SweepFolder, SweepShard,
    SweepWork,
};

/// Options of a reproduction that are not in the [`FolderSpec`].
#[derive(Clone, Debug)]
pub struct ReproductionRequest {
    /// Number of threads on which runs are made.
    pub threads: usize,
    /// Shard whose runs are made; `None` if no run is made, because all have to be in the folder.
    pub compute: Option<SweepShard>,
    /// Folders of live runs for comparison.
    pub live: Vec<PathBuf>,
    /// Live runs to make into the folder, for comparison.
    pub make_live: Option<MakeLive>,
}

/// A spec with its paper, parts and readings looked up.
struct ResolvedSpec<'a> {
    spec: &'a ReproductionSpec,
    paper: &'a PaperEvaluation,
    parts: Vec<&'a PaperPart>,
    /// Factors of the paper's default reading that no requested factor replaces.
    default: Vec<ReadingFactor>,
    /// Requested factors, which are applied to all cells.
    readings: Vec<ReadingFactor>,
}

impl<'a> ResolvedSpec<'a> {
    fn resolve(
        spec: &'a ReproductionSpec,
        paper: &'a PaperEvaluation,
        part: Option<&str>,
    ) -> Result<Self, SweepError> {
        let named = |name: &String| {
            let unknown = || {
                let known: Vec<&str> = paper.factors.iter().map(|f| f.name.as_str()).collect();
                let known = known.join(", ");
                SweepError::BadInput(format!(
                    "{name}: there is no such reading (one way to read the \
                         paper); give {known}"
                ))
            };
            paper.factor(name).cloned().ok_or_else(unknown)
        };
        let readings = spec.readings.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let mut default = paper.default.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let parts = paper.parts(part);
        // A part that compares readings begins at the text.
        let is_text = parts.iter().any(|part| part.compares_readings());
        default.retain(|factor| !is_text && readings.iter().all(|asked| factor.goes_with(asked)));
        Ok(Self { spec, paper, parts, default, readings })
    }

    /// Settings of a cell: those of the paper's default and preset readings, then the user's, then those of the other `readings`. A
    /// reading is a way to read the paper where its text leaves something open.
    fn settings(&self, case: &str, readings: &[ReadingFactor]) -> Vec<String> {
        let of = |preset: bool| {
            let readings = readings.iter().filter(move |factor| factor.preset == preset);
            readings.flat_map(|factor| self.paper.settings(factor, case))
        };
        let default = self.default.iter().flat_map(|factor| self.paper.settings(factor, case));
        let set = default.chain(of(true)).chain(self.spec.set.iter().cloned()).chain(of(false));
        set.chain(self.settings_chosen(&self.spec.of_cells, case)).collect()
    }

    fn is_without(&self, case: &str) -> bool {
        self.spec.without.iter().any(|(of, _)| matches(of, case, &self.paper.lists))
    }

    /// Cells that are left out of the requested parts, each with the input that the cell needs.
    fn left_out(&self) -> Vec<(String, String)> {
        let all: Vec<_> = self.parts.iter().flat_map(|part| self.paper.cells_of(part)).collect();
        let is_of_it = |(of, _): &&(String, String)| {
            all.iter().any(|case| matches(of, case, &self.paper.lists))
        };
        self.spec.without.iter().filter(is_of_it).cloned().collect()
    }

    fn settings_chosen(&self, of_cells: &[(String, String)], case: &str) -> Vec<String> {
        let fits = of_cells.iter().filter(|(of, _)| matches(of, case, &self.paper.lists));
        fits.map(|(_, set)| set.clone()).collect()
    }

    /// Cells of all parts, without those that are left out.
    fn cells(&self, shared: &SharedInputs) -> Result<Vec<SweepCell>, SweepError> {
        let parts = self.parts.iter().filter(|part| part.own.is_none());
        let cases = parts.flat_map(|part| self.paper.cells_of(part));
        let mut cells = Vec::new();
        for case in unique(cases.filter(|case| !self.is_without(case))) {
            let cell = self.paper.cell(&case, &self.settings(&case, &self.readings))?;
            cell.check(self.spec.first_seed, shared)?;
            cells.push(cell);
        }
        let mut all = self.parts.iter().flat_map(|part| self.paper.cells_of(part));
        match self.spec.without.first() {
            Some((_, needs)) if all.all(|case| self.is_without(&case)) => {
                Err(SweepError::BadInput(format!("{}: {needs}", self.spec.what)))
            }
            _ => Ok(cells),
        }
    }

    /// Computations of the parts whose figures do not come from experiments, without the cells that are left out.
    fn own(&self) -> Result<Vec<CellComputation>, SweepError> {
        let ReproductionSpec { lifetimes, prices, own_set, .. } = self.spec;
        let recorded = RecordedInputs::read(lifetimes.as_deref(), prices.as_deref(), own_set)?;
        let of = |part: &&PaperPart| {
            let mut cases = self.paper.cells_of(part);
            cases.retain(|case| !self.is_without(case));
            let all = part.own?.all(&cases, &recorded);
            Some(all.map(|made| made.at_most(part.seeds)).collect::<Vec<_>>())
        };
        let all = self.parts.iter().filter_map(of).flatten();
        let mut seen = BTreeSet::new();
        // Two parts may have the same case.
        let all: Vec<CellComputation> = all.filter(|made| seen.insert(made.case.clone())).collect();
        all.iter().try_for_each(CellComputation::check)?;
        Ok(all)
    }

    /// Presets that were not requested; `None` stands for following the paper's text, without a preset.
    fn other_presets(&self) -> Vec<Option<&'a ReadingFactor>> {
        let presets = self.paper.factors.iter().filter(|factor| factor.preset);
        let is_other = |preset: &Option<&ReadingFactor>| {
            let mine = self.readings.iter().find(|factor| factor.preset);
            mine.map(|f| &f.name) != preset.map(|f| &f.name)
        };
        std::iter::once(None).chain(presets.map(Some)).filter(is_other).collect()
    }
}

impl ReproductionRequest {
    /// A request for all runs on this many threads, without live runs.
    pub const fn new(threads: usize) -> Self {
        Self { threads, compute: Some(SweepShard::ALL), live: Vec::new(), make_live: None }
    }

    /// Makes the runs of `spec` into `folder` and, unless it is a shard, all results. Results of
    /// another command in the folder are replaced only with `force`.
    ///
    /// # Errors
    ///
    /// The request makes no sense, a run can't be made, or the system refuses.
    pub fn run(
        &self,
        spec: &ReproductionSpec,
        (folder, force): (&Path, bool),
        progress: Progress<'_>,
    ) -> Result<Option<FinishedReproduction>, SweepError> {
        let clock = OriginClock::begin();
        // Nothing is made before the request is known to be right.
        let shared = SharedInputs::default();
        let (paper, part) = asked_paper(spec)?;
        let paper = paper.with_data(spec.prices.as_deref());
        let asked = ResolvedSpec::resolve(spec, &paper, part.as_deref())?;
        let made =
            self.check_request(&asked, self.compute.is_some_and(SweepShard::is_part), &shared)?;
        let mut folder = SweepFolder::open(folder, &FolderSpec::Reproduce(spec.clone()), force)?;
        self.make_all(&asked, (made, clock), &shared, &mut folder, progress)
    }

    /// Checks everything that [`Self::run`] checks before it makes anything, for runs that are made
    /// in shards elsewhere.
    ///
    /// # Errors
    ///
    /// The request makes no sense, or can't be made in shards.
    pub fn check_parts(&self, spec: &ReproductionSpec) -> Result<(), SweepError> {
        let (paper, part) = asked_paper(spec)?;
        let paper = paper.with_data(spec.prices.as_deref());
        let asked = ResolvedSpec::resolve(spec, &paper, part.as_deref())?;
        self.check_request(&asked, true, &SharedInputs::default()).map(drop)
    }

    /// Cells and computations of the parts, if the request makes sense.
    fn check_request(
        &self,
        asked: &ResolvedSpec<'_>,
        in_parts: bool,
        shared: &SharedInputs,
    ) -> Result<(Vec<SweepCell>, Vec<CellComputation>), SweepError> {
        let made = (asked.cells(shared)?, asked.own()?);
        let search = asked.parts.iter().find(|part| !part.search.is_empty());
        if let Some(part) = search.filter(|_| in_parts) {
            return Err(SweepError::BadInput(format!(
                "{}/{}: a search can't be split, since each step depends on those before; leave out \
                 --shard and --engine",
                asked.paper.name, part.name
            )));
        }
        if search.is_some() {
            check_seeds(asked.spec.trial_seeds)?;
        }
        for folder in &self.live {
            LiveRun::read(folder)?;
        }
        Ok(made)
    }

    /// Merges the shards of one command; all runs have to be there.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::run`], or runs are missing.
    pub fn merge(
        &self,
        parts: &[PathBuf],
        (folder, force): (&Path, bool),
        progress: Progress<'_>,
    ) -> Result<Option<FinishedReproduction>, SweepError> {
        let clock = OriginClock::begin();
        let mut folder = SweepFolder::merge(folder, parts, force)?;
        let FolderSpec::Reproduce(spec) = folder.spec().clone() else {
            return Err(SweepError::BadInput("these shards are of a sweep or comparison, not of the reproduction of a paper; merge them with the command that made them".to_owned()));
        };
        let (shared, (paper, part)) = (SharedInputs::default(), asked_paper(&spec)?);
        let paper = paper.with_data(spec.prices.as_deref());
        let asked = ResolvedSpec::resolve(&spec, &paper, part.as_deref())?;
        let request = Self { compute: None, ..self.clone() };
        let made = (asked.cells(&shared)?, asked.own()?);
        request.make_all(&asked, (made, clock), &shared, &mut folder, progress)
    }

    fn make_all(
        &self,
        asked: &ResolvedSpec<'_>,
        ((cells, own), clock): ((Vec<SweepCell>, Vec<CellComputation>), OriginClock),
        shared: &SharedInputs,
        folder: &mut SweepFolder,
        progress: Progress<'_>,
    ) -> Result<Option<FinishedReproduction>, SweepError> {
        let (paper, parts, spec) = (asked.paper, &asked.parts[..], asked.spec);
        let until = |count: u64| spec.first_seed..=spec.first_seed + count.max(1) - 1;
        let work = |count, compute| SweepWork {
            seeds: until(count),
            threads: self.threads,
            compute,
            shared,
        };
        let mut told = |n, of| progress("runs", n, of);
        let samples = work(spec.seeds, self.compute).run(&cells, folder, &mut told)?;
        // Measurements are made one after the other, with nothing else running.
        let mut told = |n, of| progress("measured", n, of);
        let threads = if own.iter().any(|made| made.own.is_measured()) { 1 } else { self.threads };
        let of_own = SweepWork { threads, ..work(spec.seeds, self.compute) };
        let of_own = of_own.run(&own, folder, &mut told)?;
        if self.compute.is_some_and(SweepShard::is_part) {
            return Ok(None);
        }
        let all: Vec<String> = cells.iter().map(|cell| cell.case.clone()).collect();
        let of_own = own.iter().zip(of_own).flat_map(|(of, samples)| of.by_cell(&samples));
        let beside: Vec<_> = of_own.collect();
        let of_cells = all.iter().cloned().zip(samples);
        let results = CellResults::new(of_cells.chain(beside.iter().cloned()));
        let (presets, others): (Vec<_>, Vec<_>) =
            asked.readings.iter().cloned().partition(|factor| factor.preset);
        let ours = PaperReading::new(paper, parts, presets, &results);

        // Other readings are made where everything comes together, whatever the shards.
        let (mut trials, mut tried) = (Vec::new(), Vec::new());
        let by_words = paper.factors.iter().any(|factor| !factor.words.is_empty());
        if all.is_empty() && by_words && spec.trial_seeds > 0 {
            let mut told = |n, of| progress("factors", n, of);
            let work = SweepWork { threads, ..work(spec.trial_seeds, Some(SweepShard::ALL)) };
            let run = |tried: &[CellComputation]| work.run(tried, folder, &mut told);
            let cases = cells_in_question(paper, &ours);
            (trials, tried) = own_readings::each_alone((paper, parts), (&own, &cases), run)?;
        }
        let mut made: Vec<(Vec<SweepCell>, u64)> = Vec::new();
        let mut run = |stage: &str, cells: Vec<SweepCell>, count: u64| {
            let mut told = |n, of| progress(stage, n, of);
            let samples = work(count, Some(SweepShard::ALL)).run(&cells, folder, &mut told)?;
            made.push((cells, count));
            Ok(samples)
        };
        // A preset comes before the user's settings, a tried factor after them.
        let preset =
            |case: &str, of: &[ReadingFactor]| asked.settings(case, &[of, &others].concat());
        let trial = |case: &str, of: &[ReadingFactor]| {
            let ours = asked.settings(case, &asked.readings);
            let tried = of.iter().flat_map(|factor| paper.settings(factor, case));
            [ours, asked.settings_chosen(&spec.trial_set, case), tried.collect()].concat()
        };
        let (mut read, mut best, mut closer) = (Vec::new(), None, Vec::new());
        if parts.iter().any(|part| !part.search.is_empty()) {
            let mut maker = ReadingMaker { paper, parts, cases: all, beside, settings: trial, run };
            read = maker.search(spec.trial_seeds, spec.seeds)?;
        } else if let Some(part) = parts.iter().find(|part| !part.combine.is_empty()) {
            let mut maker = ReadingMaker { paper, parts, cases: all, beside, settings: trial, run };
            read = maker.combine(&part.combine, spec.seeds)?;
        } else if !parts.iter().any(|part| part.live) {
            if spec.trial_seeds > 0 && trials.is_empty() {
                // Cells that are not experiments have no settings: other cells may replace them.
                let mut cases = cells_in_question(paper, &ours);
                cases.retain(|case| all.contains(case));
                let beside = beside.clone();
                let mut maker =
                    ReadingMaker { paper, parts, cases, beside, settings: trial, run: &mut run };
                trials = maker.each_alone(spec.trial_seeds)?;
            }
            // One run of each cell has batches, which are no pairs of runs.
            if !spec.trial_set.is_empty() && spec.seeds > 1 {
                let (of, tried) =
                    ((paper, parts, &all[..]), (&ours, &trials[..], &spec.trial_set[..]));
                closer = look_closer(of, tried, trial, &mut run)?;
            }
            let other = asked.other_presets();
            if !other.is_empty() {
                let (cases, beside) = (all.clone(), Vec::new());
                let mut maker =
                    ReadingMaker { paper, parts, cases, beside, settings: preset, run: &mut run };
                let other = other.into_iter().map(|preset| preset.cloned().into_iter().collect());
                read = maker.make("presets", other.collect(), spec.seeds)?;
                read.push(ours.clone());
                read.sort_by_key(|reading| !reading.factors.is_empty());
            }
            // The best reading refers to the default: it is shown only beside that.
            if let Some(known) = paper.best.as_ref().filter(|_| asked.readings.is_empty()) {
                let factors = paper.best_factors(known).map_err(|name| {
                    let what = format!("the data file of {}: its best reading", paper.name);
                    SweepError::BadInput(format!(
                        "{what} names the factor {name}, which the file does not have"
                    ))
                })?;
                let mut maker = ReadingMaker {
                    paper,
                    parts,
                    cases: all,
                    beside,
                    settings: trial,
                    run: &mut run,
                };
                best = maker.make("the best reading", vec![factors], spec.seeds)?.pop();
            }
        }

        let live = self.live.iter().map(|folder| LiveRun::with_figures(folder));
        let mut live = live.collect::<Result<Vec<_>, _>>()?;
        if let Some(make) = &self.make_live {
            let of_parts = parts.iter().filter(|part| part.live).flat_map(|part| &part.cells);
            let patterns = paper.live.iter().chain(of_parts).flat_map(|p| paper.expand(p));
            let patterns: Vec<String> = patterns.collect();
            let cells: Vec<&SweepCell> =
                cells.iter().filter(|c| patterns.contains(&c.case)).collect();
            live.extend(make.make(&cells, folder.path(), progress)?);
        }
        let charts = draw_charts(asked, &cells, &results, shared, folder)?;
        let done = FinishedReproduction {
            what: spec.what.clone(),
            command: folder.spec().command(),
            seeds: (spec.first_seed, spec.first_seed + spec.seeds.max(1) - 1),
            inputs: InputFile::read_all(spec)?,
            origin: clock.origin(folder, self.threads),
            parts: parts.iter().map(|part| part.name.clone()).collect(),
            default: asked.default.iter().map(|factor| factor.name.clone()).collect(),
            cells: cells
                .iter()
                .map(|c| (c.case.clone(), c.command(&until(spec.seeds))))
                .chain(own.iter().map(|of| (of.case.clone(), folder.spec().command())))
                .collect(),
            live,
            results,
            ours,
            trials,
            trial_set: settings_in_words(&spec.trial_set),
            closer,
            read,
            best,
            without: asked.left_out(),
            price_records: price_notes::collect(&cells, &own),
            charts,
            paper: paper.clone(),
        };
        report::write(&done, folder)?;
        let all = std::iter::once((&cells, spec.seeds)).chain(made.iter().map(|(c, n)| (c, *n)));
        let cells = all.flat_map(|(cells, n)| cells.iter().map(move |cell| (cell as _, until(n))));
        let own = own.iter().map(|of| (of as _, until(spec.seeds)));
        let tried = tried.iter().map(|of| (of as _, until(spec.trial_seeds)));
        folder.settle(cells.chain(own).chain(tried))?;
        Ok(Some(done))
    }
}

/// Cells of printed figures, and of claims on which the paper is not silent.
fn cells_in_question(paper: &PaperEvaluation, ours: &PaperReading) -> Vec<String> {
    let printed = ours.rows.iter().filter(|row| row.paper.is_some()).map(|row| row.case.clone());
    let said = ours.claims.iter().filter(|judged| !judged.claim.silent).flat_map(|judged| {
        judged.claim.patterns().into_iter().flat_map(|pattern| paper.expand(&pattern))
    });
    let wanted: BTreeSet<String> = printed.chain(said).collect();
    // In the paper's order, without comparisons of two cells.
    let all = paper.parts.iter().flat_map(|part| paper.cells_of(part));
    unique(all.filter(|case| wanted.contains(case)))
}

/// Draws a chart of each cell's run that has the median makespan; returns the name and the file of each chart.
fn draw_charts(
    asked: &ResolvedSpec<'_>,
    cells: &[SweepCell],
    results: &CellResults,
    shared: &SharedInputs,
    folder: &mut SweepFolder,
) -> Result<Vec<(String, String)>, SweepError> {
    let mut made = Vec::new();
    let parts = asked.parts.iter().filter(|part| part.gantt);
    for case in parts.flat_map(|part| asked.paper.cells_of(part)) {
        let (Some(cell), Some(samples)) =
            (cells.iter().find(|cell| cell.case == case), results.samples(&case))
        else {
            continue;
        };
        let makespan = |n: &usize| samples[*n].figure("makespan_s").unwrap_or(f64::NEG_INFINITY);
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_by(|a, b| makespan(a).total_cmp(&makespan(b)));
        let Some(median) = order.get((order.len().max(1) - 1) / 2) else { continue };
        let seed = asked.spec.first_seed + *median as u64;
        let file = format!("gantt/{}.svg", case.replace('/', "-"));
        folder.write(&file, &cell.gantt(seed, shared)?)?;
        made.push((format!("{case}, seed {seed}"), file));
    }
    Ok(made)
}
