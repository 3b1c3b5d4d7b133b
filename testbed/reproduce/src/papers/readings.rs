//! Other readings of a paper: its figures and claims with some factors changed. Each factor alone,
//! to explain a difference; the paper's presets; and the readings that explain most of its printed
//! values.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use dormouse_analysis::RunSample;
use dormouse_estimate::Verdict;

use super::claims::{JudgedClaim, judge_all};
use super::explained::ExplainedStatements;
use super::factor::{FactorGround, ReadingFactor};
use super::figures::{FigureRow, beyond, rows};
use super::paper::{PaperEvaluation, PaperPart};
use super::pattern::unique;
use super::results::CellResults;
use super::search::{ReadingChanges, score, search};
use crate::sweep::{Samples, SweepCell, SweepError};
use dormouse_experiment::InputError;

/// Number of best readings of a search that get more runs. As many of the best readings whose changes the paper's text allows get
/// more runs, too.
const BEST: usize = 5;

/// Least number of runs of each reading (a possible interpretation of a paper's text) in a search for the best one. A single
/// run has no interval, so it can't contradict a statement of the paper.
const LEAST_SEEDS: u64 = 2;

/// Number of readings that are run at the same time; of each reading only the explained statements are kept.
const AT_ONCE: usize = 16;

/// A reading with its results.
#[derive(Clone, Debug)]
pub struct PaperReading {
    /// The reading's factors; empty for our default reading.
    pub factors: Vec<ReadingFactor>,
    /// Figures with this reading.
    pub rows: Vec<FigureRow>,
    /// Claims, judged with this reading.
    pub claims: Vec<JudgedClaim>,
    /// Number of figures within their tolerance, and number of all, among the figures by which the paper's readings are searched.
    /// Inputs of a run are not counted.
    pub within: (usize, usize),
    /// Figures and claims of the reading that our runs do not contradict.
    pub explained: ExplainedStatements,
    /// Whether a plan could be made for every cell of the reading.
    pub(super) is_whole: bool,
}

impl PaperReading {
    pub(super) fn new(
        paper: &PaperEvaluation,
        parts: &[&PaperPart],
        factors: Vec<ReadingFactor>,
        results: &CellResults,
    ) -> Self {
        let (rows, mut claims) = (rows(paper, parts, results), judge_all(paper, results));
        let is_trial = results.is_trial() || factors.iter().any(|factor| !factor.preset);
        claims.retain(|judged| !(is_trial && judged.claim.no_factors));
        let search: Vec<&String> = paper.parts.iter().flat_map(|part| &part.search).collect();
        let counts = search.iter().map(|metric| beyond(&rows, Some(metric)));
        let (off, printed) = counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let explained = ExplainedStatements::new(paper, &rows, &claims, &search);
        Self { factors, rows, claims, within: (printed - off, printed), explained, is_whole: true }
    }

    /// Names of the reading's factors, or `none`.
    pub fn name(&self) -> String {
        self.said(|factor| &factor.name, " + ", "none")
    }

    /// The reading's changes in words.
    pub fn about(&self) -> String {
        self.said(|factor| &factor.about, "; ", "as ours are")
    }

    fn said(&self, of: impl Fn(&ReadingFactor) -> &str, between: &str, nothing: &str) -> String {
        let all: Vec<&str> = self.factors.iter().map(of).collect();
        if all.is_empty() { nothing.to_owned() } else { all.join(between) }
    }

    /// Evidence for the reading: the weakest ground of its factors; `None` if no factor has one.
    pub fn ground(&self) -> Option<FactorGround> {
        self.factors.iter().filter_map(|factor| factor.ground).max()
    }

    /// Number of claims with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == verdict).count()
    }

    /// Number of claims that have a verdict.
    pub fn judged(&self) -> usize {
        self.claims.len() - self.count(Verdict::Silent) - self.count(Verdict::Undecidable)
    }

    /// Number of the paper's statements that runs under this reading agree with, less a penalty for each setting that the
    /// reading changes.
    pub fn score(&self) -> i64 {
        score(self.explained.count(), self.factors.iter().map(|factor| factor.changes).sum())
    }

    /// Claims, in words, that hold with this reading and fail without it.
    pub fn mends(&self, without: &Self) -> Vec<&str> {
        self.turned(without, Verdict::Fails, Verdict::Holds)
    }

    /// Claims, in words, that fail with this reading and hold without it.
    pub fn breaks(&self, without: &Self) -> Vec<&str> {
        self.turned(without, Verdict::Holds, Verdict::Fails)
    }

    fn turned(&self, without: &Self, from: Verdict, to: Verdict) -> Vec<&str> {
        let was =
            |says: &str| without.claims.iter().any(|c| c.claim.says == says && c.verdict == from);
        let now = self.claims.iter().filter(|claim| claim.verdict == to);
        now.map(|claim| &*claim.claim.says).filter(|says| was(says)).collect()
    }

    /// Rating of the reading's factor in a word. It is only a lead unless it mends all failing claims, breaks
    /// none, and moves no figure away from the paper's; a counterfactual is not even that.
    pub fn word(&self, without: &Self) -> &'static str {
        let (mends, breaks) = (self.mends(without).len(), self.breaks(without).len());
        let further = beyond(&self.rows, None).0 > beyond(&without.rows, None).0;
        match &self.factors[..] {
            [] => "",
            [factor, ..] if factor.counterfactual => "counterfactual",
            _ if mends == 0 && breaks == 0 => "changes no verdict",
            _ if mends == 0 => "mends nothing",
            _ if mends == without.count(Verdict::Fails) && breaks == 0 && !further => {
                "mends all that fails"
            }
            _ => "lead",
        }
    }
}

/// The reading that explains more statements than our default one, by more than the price of its changes and by more
/// than chance; presets are left out. `None` if no reading does.
pub(super) fn recommended(read: &[PaperReading]) -> Option<&PaperReading> {
    let ours = read.iter().find(|reading| reading.factors.is_empty())?;
    let is_reading = |reading: &&PaperReading| !reading.factors.iter().any(|factor| factor.preset);
    let best = read.iter().filter(is_reading).max_by_key(|reading| reading.score())?;
    let is_better = best.score() > ours.score();
    (is_better && best.explained.is_beyond_chance(&ours.explained)).then_some(best)
}

/// Checks that a search has enough runs of each reading.
///
/// # Errors
///
/// [`SweepError::BadInput`] for fewer than [`LEAST_SEEDS`].
pub(super) fn check_seeds(few: u64) -> Result<(), SweepError> {
    if few >= LEAST_SEEDS {
        return Ok(());
    }
    Err(SweepError::BadInput(format!(
        "with {few} runs each, a better reading can't be told from chance: give --cause-seeds \
         {LEAST_SEEDS} or more (10 tell more of them apart)"
    )))
}

/// Parts, cells and functions from which readings of a paper are made.
pub(super) struct ReadingMaker<'a, S, R> {
    pub(super) paper: &'a PaperEvaluation,
    /// Parts of the paper whose figures are computed.
    pub(super) parts: &'a [&'a PaperPart],
    /// Names of the cells that are run for each reading.
    pub(super) cases: Vec<String>,
    /// Samples of cells without settings, such as the cells of a record; they are the same with all readings.
    pub(super) beside: Vec<(String, Vec<RunSample>)>,
    /// Function that returns all settings of a cell under given factors.
    pub(super) settings: S,
    /// Function that runs cells for a named stage, each with a given number of seeds.
    pub(super) run: R,
}

impl<S, R> ReadingMaker<'_, S, R>
where
    S: Fn(&str, &[ReadingFactor]) -> Vec<String>,
    R: FnMut(&str, Vec<SweepCell>, u64) -> Result<Samples, SweepError>,
{
    /// Makes each of the readings in `all`, with all runs together. A cell that can't be planned with a factor is left
    /// out of the reading, and statements that need the cell are not judged there.
    pub(super) fn make(
        &mut self,
        stage: &str,
        all: Vec<Vec<ReadingFactor>>,
        seeds: u64,
    ) -> Result<Vec<PaperReading>, SweepError> {
        let (mut cells, mut known) = (Vec::new(), BTreeMap::new());
        let mut planned = |case: &String, factors: &[ReadingFactor]| -> Result<_, InputError> {
            let set = (self.settings)(case, factors);
            let at = match known.entry((case.clone(), set)) {
                Entry::Occupied(at) => *at.get(),
                Entry::Vacant(free) => {
                    cells.push(self.paper.cell(case, &free.key().1)?);
                    *free.insert(cells.len() - 1)
                }
            };
            Ok((case.clone(), at))
        };
        let mut wanted = Vec::new();
        for factors in &all {
            let mut of = Vec::new();
            for case in &self.cases {
                match planned(case, factors) {
                    Err(error) if factors.is_empty() => return Err(error.into()),
                    cell => of.extend(cell),
                }
            }
            wanted.push(of);
        }
        let samples = (self.run)(stage, cells, seeds)?;
        let read = all.into_iter().zip(wanted).map(|(factors, wanted)| {
            let is_whole = wanted.len() == self.cases.len();
            let samples = wanted.into_iter().map(|(case, at)| (case, samples[at].clone()));
            let instead = factors.iter().flat_map(|factor| factor.metrics.clone()).collect();
            let stand_ins = factors.iter().flat_map(|factor| self.paper.stand_ins(factor));
            let all = self.beside.iter().cloned().chain(samples);
            let results = CellResults::new(all).with(instead, stand_ins.collect());
            PaperReading {
                is_whole,
                ..PaperReading::new(self.paper, self.parts, factors, &results)
            }
        });
        Ok(read.collect())
    }

    /// Whether a factor gives a key of any cell another value than the cell has without the factor.
    fn changes_a_cell(&self, factor: &ReadingFactor) -> bool {
        let last_values = |case: &str, of: &[ReadingFactor]| -> BTreeMap<String, String> {
            let all = (self.settings)(case, of).into_iter();
            all.filter_map(|set| set.split_once('=').map(|(key, x)| (key.into(), x.into())))
                .collect()
        };
        let is_changed = |case: &String| {
            last_values(case, &[]) != last_values(case, std::slice::from_ref(factor))
        };
        self.cases.iter().any(is_changed)
    }

    /// Makes the reading without any factor, then a reading with each single factor that changes a cell.
    pub(super) fn each_alone(&mut self, seeds: u64) -> Result<Vec<PaperReading>, SweepError> {
        let changes = |factor: &&ReadingFactor| {
            !factor.preset && (self.reads_otherwise(factor) || self.changes_a_cell(factor))
        };
        let tried = self.paper.factors.iter().filter(changes).map(|factor| vec![factor.clone()]);
        let all = std::iter::once(Vec::new()).chain(tried).collect();
        self.make("factors", all, seeds)
    }

    /// Makes a reading of every combination of the given factors, with `seeds` runs each; returns our default reading
    /// first, then the others, the best score first.
    ///
    /// # Errors
    ///
    /// [`SweepError::BadInput`] for a name that no factor has; an error of the runs.
    pub(super) fn combine(
        &mut self,
        names: &[String],
        seeds: u64,
    ) -> Result<Vec<PaperReading>, SweepError> {
        let named = |name: &String| {
            let unknown = || {
                SweepError::BadInput(format!(
                    "{name}: the paper has no factor of this name; give names from the list of its factors"
                ))
            };
            self.paper.factor(name).cloned().ok_or_else(unknown)
        };
        let factors = names.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let chosen = |set: usize| (0..factors.len()).filter(move |n| set >> n & 1 == 1);
        let all = (0..1_usize << factors.len())
            .map(|set| chosen(set).map(|n| factors[n].clone()).collect())
            .collect();
        let mut found = self.make("combinations", all, seeds)?;
        found.sort_by_key(|reading| (!reading.factors.is_empty(), -reading.score()));
        found.retain(|reading| reading.is_whole);
        Ok(found)
    }

    /// Factors that a search may change; a factor that schedulers may have separately becomes one
    /// for each scheduler.
    fn changes(&self) -> Vec<ReadingFactor> {
        let grounded = self.paper.factors.iter().filter(|f| f.ground.is_some() && !f.preset);
        let each = grounded.flat_map(|factor| {
            if !factor.each_scheduler {
                return vec![factor.clone()];
            }
            let set = |case: &&String| !self.paper.settings(factor, case).is_empty();
            let of = self.cases.iter().filter(set).filter_map(|case| case.rsplit('/').next());
            unique(of).into_iter().map(|scheduler| factor.only_of(scheduler)).collect()
        });
        each.collect()
    }

    /// Whether a factor replaces figures of the runs, or replaces figures or cells by ones that the cells in `beside` have.
    fn reads_otherwise(&self, factor: &ReadingFactor) -> bool {
        let stand_ins = self.paper.stand_ins(factor);
        let is_made =
            |(case, _): &(String, Vec<RunSample>)| stand_ins.values().any(|other| other == case);
        let has = |(_, samples): &(String, Vec<RunSample>)| {
            let figures = samples.first().map(|sample| &sample.figures);
            figures.is_some_and(|figures| {
                factor.metrics.values().any(|name| figures.contains_key(name))
            })
        };
        let of_runs = !factor.metrics.is_empty() && !self.cases.is_empty() && stand_ins.is_empty();
        of_runs || self.beside.iter().any(|cell| is_made(cell) || has(cell))
    }

    /// Searches readings with `few` runs each, then makes `many` runs of those that explain most. The result has our
    /// default reading first, then the best readings and the best ones that the paper's text allows, then the paper's
    /// presets.
    pub(super) fn search(&mut self, few: u64, many: u64) -> Result<Vec<PaperReading>, SweepError> {
        check_seeds(few)?;
        let all = self.changes();
        let cells_of = |factor: &ReadingFactor| -> BTreeSet<&String> {
            let is_set = |case: &&String| !self.paper.settings(factor, case).is_empty();
            self.cases.iter().filter(is_set).collect()
        };
        let cells: Vec<BTreeSet<String>> =
            all.iter().map(|factor| cells_of(factor).into_iter().cloned().collect()).collect();
        let of = |changes: &[usize]| changes.iter().map(|&c| all[c].clone()).collect::<Vec<_>>();
        let changes = ReadingChanges {
            count: all.len(),
            together: &|a, b| all[a].goes_with(&all[b]),
            touch: &|a, b| !cells[a].is_disjoint(&cells[b]),
        };
        let tried = search(&changes, |readings| {
            let mut explained = Vec::with_capacity(readings.len());
            let size = readings.first().map_or(0, Vec::len);
            for (n, some) in readings.chunks(AT_ONCE).enumerate() {
                let (from, to) = (n * AT_ONCE + 1, n * AT_ONCE + some.len());
                let stage =
                    format!("readings {from} to {to} of {} with {size} changes", readings.len());
                let made = self.make(&stage, some.iter().map(|c| of(c)).collect(), few)?;
                // A reading with a cell that can't be planned explains nothing.
                let counts = made.iter().map(|r| r.is_whole.then_some(r.explained.count()));
                explained.extend(counts);
            }
            Ok::<_, SweepError>(explained)
        })?;
        let is_of_text = |c: &usize| all[*c].ground == Some(FactorGround::Text);
        let of_text = tried.iter().filter(|tried| tried.changes.iter().all(is_of_text)).take(BEST);
        let best = tried.iter().take(BEST).chain(of_text).map(|tried| &tried.changes[..]);
        let chosen = unique(std::iter::once(&[][..]).chain(best)).into_iter().map(of);
        let presets = self.paper.factors.iter().filter(|factor| factor.preset);
        let presets = presets.map(|factor| vec![factor.clone()]);
        let mut found = self.make("the best readings", chosen.chain(presets).collect(), many)?;
        let is_preset = |reading: &PaperReading| reading.factors.iter().any(|factor| factor.preset);
        // Ours has no changes, and no other reading has none.
        found.sort_by_key(|r| (!r.factors.is_empty(), is_preset(r), -r.score()));
        found.retain(|reading| reading.is_whole);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use dormouse_analysis::RunSample;

    use super::super::factor::BestReading;
    use super::super::named;
    use super::*;
    use crate::sweep::SampleSource as _;

    #[test]
    fn factors_of_the_same_key_exclude_each_other() {
        let (paper, _) = named("burst-hads/readings").expect("it is there");
        let goes = |one: &str, other: &str| {
            let factor = |name| paper.factor(name).expect(name);
            factor(one).goes_with(factor(other))
        };
        assert!(!goes("burst-on-idle", "burst-on-idle-vcpus"));
        assert!(!goes("events-of-the-market", "events-as-emulated"));
        assert!(!goes("table-ii-three", "artifact-t3") && !goes("table-ii-three", "five-of-each"));
        assert!(goes("relax-always", "frozen-charged"));
    }

    #[test]
    fn every_factor_with_a_ground_can_be_planned_in_every_cell() {
        let (paper, part) = named("burst-hads/readings").expect("it is there");
        let cases = paper.cells_of(paper.parts(part.as_deref())[0]);
        let grounded: Vec<&ReadingFactor> =
            paper.factors.iter().filter(|f| f.ground.is_some()).collect();
        assert!(cases.len() == 52 && grounded.len() > 20, "{} {}", cases.len(), grounded.len());
        for (factor, case) in grounded.iter().flat_map(|f| cases.iter().map(move |c| (f, c))) {
            let cell = paper.cell(case, &paper.settings(factor, case));
            assert!(cell.is_ok(), "{} {case}: {cell:?}", factor.name);
        }
    }

    /// Searches readings of Burst-HADS among the factors named in `kept`; `sample` makes the cost and makespan of a run
    /// from its cell and seed. Also returns how often runs were requested with few seeds, and how often with many.
    fn searched(
        kept: &[&str],
        seeds: (u64, u64),
        sample: impl Fn(&SweepCell, u64) -> Option<(f64, f64)>,
    ) -> Result<(Vec<PaperReading>, (usize, usize)), SweepError> {
        let (mut paper, part) = named("burst-hads/readings").expect("it is there");
        paper.factors.retain(|factor| kept.contains(&&*factor.name));
        paper.runs = Some(3);
        let parts = paper.parts(part.as_deref());
        let mut asked = (0, 0);
        let run = |_: &str, cells: Vec<SweepCell>, count: u64| {
            *(if count == seeds.0 { &mut asked.0 } else { &mut asked.1 }) += 1;
            let of_cell = |cell: &SweepCell| {
                let figures = (1..=count).filter_map(|seed| sample(cell, seed));
                let of_run = |(cost, makespan): (f64, f64)| RunSample {
                    figures: [("cost_usd".into(), cost), ("makespan_s".into(), makespan)].into(),
                    batches: BTreeMap::new(),
                    steps: 0,
                    decisions: String::new(),
                };
                figures.map(of_run).collect()
            };
            Ok(cells.iter().map(of_cell).collect())
        };
        let mut maker = ReadingMaker {
            paper: &paper,
            parts: &parts,
            cases: paper.cells_of(parts[0]),
            beside: Vec::new(),
            settings: |case: &str, factors: &[ReadingFactor]| {
                factors.iter().flat_map(|factor| paper.settings(factor, case)).collect()
            },
            run,
        };
        let found = maker.search(seeds.0, seeds.1)?;
        drop(maker);
        Ok((found, asked))
    }

    /// No run has a figure, so that no statement is explained and every change only lowers a reading's score.
    #[test]
    fn ours_comes_first_and_the_presets_last() {
        let kept = ["frozen-charged", "costs-in-dollars", "artifact"];
        let (found, asked) = searched(&kept, (3, 4), |_, _| None).expect("nothing fails");
        let grounds: Vec<_> = found[..4].iter().map(|r| (r.score(), r.ground())).collect();
        let (text, code) = (Some(FactorGround::Text), Some(FactorGround::Code));
        assert_eq!(grounds, [(0, None), (-3, text), (-3, code), (-6, code)]);
        assert_eq!((found[0].name(), found[4].name()), ("none".into(), "artifact".into()));
        assert_eq!(asked, (3, 1), "a size of readings is run at once");
        assert!(recommended(&found).is_none());
    }

    /// Cost and makespan of a run, each within a tenth of the value that the paper prints; the cost is twice as high
    /// unless `is_right`.
    fn near(
        paper: &PaperEvaluation,
        cell: &SweepCell,
        seed: u64,
        is_right: bool,
    ) -> Option<(f64, f64)> {
        let printed = |metric| paper.printed(&cell.case, metric).map(|(value, _)| value);
        let mut chance = dormouse_units::RandomStream::named_stream(seed, "near", cell.digest());
        let mut about = |x: f64| x * (0.9 + 0.2 * chance.draw_below(1_000) as f64 / 1_000.0);
        let times = if is_right { 1.0 } else { 2.0 };
        Some((about(printed("cost_usd")? * times), about(printed("makespan_s")?)))
    }

    #[test]
    fn a_reading_that_explains_more_is_recommended() {
        let is_billed = |cell: &SweepCell| cell.command(&(1..=1)).contains("bill-frozen");
        let (paper, _) = named("burst-hads").expect("it is there");
        let sample = |cell: &SweepCell, seed| near(&paper, cell, seed, is_billed(cell));
        let (found, _) = searched(&["frozen-charged", "checkpoints-everywhere"], (5, 10), sample)
            .expect("nothing fails");
        assert_eq!(recommended(&found).map(PaperReading::name), Some("frozen-charged".to_owned()));
    }

    /// No factor changes more than chance does. A search with single runs would find a reading that is near by chance,
    /// so it is refused; a search with several runs recommends no reading.
    #[test]
    fn chance_is_not_recommended() {
        let kept = ["costs-in-dollars", "frozen-charged", "checkpoints-everywhere", "relax-always"];
        let (paper, _) = named("burst-hads").expect("it is there");
        let drawn = |cell: &SweepCell, seed| {
            let (cost, makespan) = near(&paper, cell, seed, true)?;
            let mut chance = dormouse_units::RandomStream::named_stream(seed, "far", cell.digest());
            let mut times = || 0.2 + 1.6 * chance.draw_below(1_000) as f64 / 1_000.0;
            Some((cost * times(), makespan * times()))
        };
        let refused = searched(&kept, (1, 1), drawn).expect_err("one run shows nothing");
        assert!(refused.to_string().contains("--cause-seeds 2"), "{refused}");
        for seeds in [(3, 3), (3, 10), (10, 30)] {
            let (found, _) = searched(&kept, seeds, drawn).expect("nothing fails");
            assert_eq!(recommended(&found).map(PaperReading::name), None, "{seeds:?}");
        }
    }

    #[test]
    fn a_factor_of_one_scheduler_alone_leaves_the_others_as_they_are() {
        let (paper, _) = named("burst-hads").expect("it is there");
        let whole = paper.factor("frozen-charged").expect("it is there");
        let (hads, ils) = (whole.only_of("hads"), whole.only_of("ils-on-demand"));
        assert_eq!(paper.settings(&hads, "j60/hads"), paper.settings(whole, "j60/hads"));
        assert!(!paper.settings(&hads, "j60/hads").is_empty());
        assert!(paper.settings(&hads, "j60/burst-hads").is_empty());
        assert!(hads.goes_with(&ils) && !hads.goes_with(&hads) && !hads.goes_with(whole));
        let best =
            |name: &str| BestReading { factors: vec![name.to_owned()], command: String::new() };
        let found = paper.best_factors(&best("frozen-charged@hads")).expect("it is known");
        assert_eq!(
            (&*found[0].name, found[0].only.as_deref()),
            ("frozen-charged@hads", Some("hads"))
        );
        assert_eq!(
            paper.best_factors(&best("nothing@hads")).err().as_deref(),
            Some("nothing@hads")
        );
    }
}
