//! Data file of a paper's evaluation.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::claim::{ClaimMeasure, PaperClaim};
use super::factor::{BestReading, ReadingFactor};
use super::own::FigureSource;
use super::pattern::{Lists, expand, matches, unique};
use super::tolerance::QuantityKind;
use crate::sweep::SweepCell;
use dormouse_experiment::InputError;

/// Evaluation of a paper: its experiments, printed values, claims, and factors that could explain a
/// difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperEvaluation {
    /// Name of the paper on the command line.
    pub name: String,
    /// Title of the page.
    pub title: String,
    /// Authors and title of the paper.
    pub source: String,
    /// Paragraphs for the page: how things are measured, and what differs from the paper.
    pub about: Vec<String>,
    /// Description of the samples, such as `runs under N seeds` or batches of one run.
    pub samples: String,
    /// Words for what would make an interval narrower, such as `more seeds`.
    pub more: String,
    /// Number of runs that each printed figure averages; `None` if the paper does not report it.
    pub runs: Option<usize>,
    /// Default number of seeds.
    #[serde(default = "ten_seeds")]
    pub seeds: u64,
    /// Named lists of words, for patterns.
    #[serde(default)]
    pub lists: Lists,
    /// Settings for each word of a case between its experiment and its scheduler; `$DATA` is the
    /// folder of records given on the command line.
    #[serde(default)]
    pub settings: BTreeMap<String, Vec<String>>,
    /// Key that the last word of a case sets, which names the scheduler.
    #[serde(default = "schedules")]
    pub scheduler: String,
    /// Format of figures for people: the name with its unit, and the number of decimals.
    #[serde(default)]
    pub metrics: BTreeMap<String, (String, usize)>,
    /// Names of the figures whose axis is linear and begins at 0.
    #[serde(default)]
    pub from_zero: Vec<String>,
    /// Tables and figures of the paper that are reproduced.
    #[serde(rename = "part")]
    pub parts: Vec<PaperPart>,
    /// Tables of the values that the paper prints.
    #[serde(default)]
    pub printed: Vec<PrintedTable>,
    /// Values that the paper does not print, computed from its data or by its method for
    /// comparison.
    #[serde(default)]
    pub refit: Vec<RefitTable>,
    /// Printed comparisons of two cells.
    #[serde(default)]
    pub compared: Vec<PrintedComparison>,
    /// Claims of the paper's text.
    #[serde(default, rename = "claim")]
    pub claims: Vec<PaperClaim>,
    /// Factors that could explain a difference.
    #[serde(default, rename = "factor")]
    pub factors: Vec<ReadingFactor>,
    /// Plots of cells from several parts of the paper.
    #[serde(default, rename = "plot")]
    pub plots: Vec<PaperPlot>,
    /// Cells with bags that are also run live.
    #[serde(default)]
    pub live: Vec<String>,
    /// Settings of the default reading, the interpretation of the paper's text that is used unless another one is asked for;
    /// parts that compare readings themselves don't use them. A user's settings and a requested reading come after them.
    #[serde(default)]
    pub default: Vec<String>,
    /// The reading that explains most of the paper, as a search found it.
    pub best: Option<BestReading>,
    /// Schedulers that are not part of the paper; their figures are shown beside the printed ones of all others.
    #[serde(default)]
    pub beside: Vec<String>,
}

/// A part of a paper's evaluation: one of its tables or figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperPart {
    /// Name of the part, such as `table-4`.
    pub name: String,
    /// Title of the part.
    pub title: String,
    /// Patterns of the part's cells.
    pub cells: Vec<String>,
    /// For each pattern of the part's cells, the names of the figures that are reported.
    pub metrics: BTreeMap<String, Vec<String>>,
    /// Whether the page shows a Gantt chart of each cell's run with the median makespan.
    #[serde(default)]
    pub gantt: bool,
    /// If the part is a figure: the name of each line, and the pattern of the line's cells.
    #[serde(default)]
    pub lines: Vec<(String, String)>,
    /// Horizontal axis of a figure: the prefix of its value in the name of a case (`bid-` for a case `bid-0.02`), and the
    /// axis's name.
    #[serde(default = "loads")]
    pub over: (String, String),
    /// Greatest number of seeds for a part that has no experiments: more would take long and show no more. `None` sets no limit.
    pub seeds: Option<u64>,
    /// Source of the figures of a part that has no experiments; `None` if the part has experiments. The case of such a figure is
    /// the cell's name without its last word.
    pub own: Option<FigureSource>,
    /// Figures for a search of readings, which looks for the reading that explains most of these figures and of the claims. As a
    /// search takes long, a part with such figures is made only if the user names it.
    #[serde(default)]
    pub search: Vec<String>,
    /// Factors of which every combination is run under all seeds; each combination is shown with its score.
    #[serde(default)]
    pub combine: Vec<String>,
    /// Whether the part's cells are also run live, once each, on real processes. A live part is made only if the user names it.
    #[serde(default)]
    pub live: bool,
    /// Whether the part is made only if the user names it, as no claim needs it.
    #[serde(default)]
    pub by_name: bool,
}

impl PaperPart {
    /// Whether the part tries readings to choose among them, by a search or by combining factors.
    pub(super) const fn compares_readings(&self) -> bool {
        !self.search.is_empty() || !self.combine.is_empty()
    }
}

const fn ten_seeds() -> u64 {
    10
}

fn schedules() -> String {
    "scheduler.name".to_owned()
}

fn loads() -> (String, String) {
    ("load-".to_owned(), "offered load".to_owned())
}

/// Printed values of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PrintedTable {
    /// Names of the figures in the table's columns.
    pub metrics: Vec<String>,
    /// Accepted difference between a printed and a computed value, but for columns of counts.
    pub tolerance: FigureTolerance,
    /// Reason for the accepted difference between the table's printed values and ours.
    #[serde(default)]
    pub because: String,
    /// Number of runs that each figure of the table averages, if it differs from the paper's number.
    pub runs: Option<usize>,
    /// Columns that are inputs of a run, not results: they are judged separately, and once for each experiment.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Columns that are counts: they have the tolerance of counts, and a printed zero is judged by its probability.
    #[serde(default)]
    pub counts: Vec<String>,
    /// Values of each cell in the order of the columns.
    pub rows: BTreeMap<String, Vec<f64>>,
}

impl PrintedTable {
    /// True if the figures of this column are counts, such as VMs in a run: they have a tolerance of their own.
    pub(super) fn is_count(&self, metric: &str) -> bool {
        self.counts.iter().any(|count| count == metric)
    }

    /// Accepted difference from this printed value of a column, whose last printed digit is worth `digit`.
    pub(super) fn tolerance_of(
        &self,
        metric: &str,
        (printed, digit): (f64, f64),
    ) -> FigureTolerance {
        match self.is_count(metric) {
            true => QuantityKind::Counted.tolerance(ClaimMeasure::Value, printed, digit),
            false => self.tolerance,
        }
    }
}

/// Values of a table that the paper does not print.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RefitTable {
    /// Source of the values, in words.
    pub source: String,
    /// Names of the figures in the table's columns.
    pub metrics: Vec<String>,
    /// Values of each cell in the order of the columns.
    pub rows: BTreeMap<String, Vec<f64>>,
}

/// Greatest accepted distance of a computed value from the paper's value.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureTolerance {
    /// Tolerance in both directions, as a fraction of the paper's value.
    Relative(f64),
    /// Tolerance in both directions, in the figure's own unit.
    Points(f64),
    /// Tolerance only upward, as a fraction of the paper's value: for values that the paper states as an upper bound.
    AtMost(f64),
}

/// A printed comparison: per cent by which a figure is lower in one cell than in another.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PrintedComparison {
    /// Pattern of the comparison's cases in `table.csv`.
    pub case: String,
    /// Name of the comparison's figure in `table.csv`.
    pub metric: String,
    /// Name of the figure that is compared in both cells.
    pub from: String,
    /// Pattern of the cells that are compared.
    pub of: String,
    /// Pattern of the cells with which the cells of `of` are compared.
    pub than: String,
    /// Accepted difference between the printed and the computed percentage.
    pub tolerance: FigureTolerance,
    /// Reason for the accepted difference between the printed and the computed percentage.
    #[serde(default)]
    pub because: String,
}

/// A plot of several cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperPlot {
    /// Heading of the plot.
    pub title: String,
    /// Pattern of the names of the cells whose runs are plotted.
    pub cells: String,
    /// The two figures of each run that are plotted against each other; if there is only one, a strip of runs for each
    /// cell.
    pub metrics: Vec<String>,
    /// Value and name of a limit that is drawn as a line and that runs should not pass; `None` for no line.
    pub limit: Option<(f64, String)>,
}

impl PaperEvaluation {
    /// Replaces `$DATA` in the paper's settings by a folder of records.
    pub(super) fn with_data(mut self, folder: Option<&Path>) -> Self {
        if let Some(folder) = folder {
            // JSON and TOML quote alike; the quotation marks are already there.
            let quoted = serde_json::Value::from(folder.to_string_lossy()).to_string();
            for set in self.settings.values_mut().flatten() {
                *set = set.replace("$DATA", &quoted[1..quoted.len() - 1]);
            }
        }
        self
    }

    /// The requested parts: the one with the name `part`, or, if `None`, all that are not searches, live, or made by name only.
    pub(super) fn parts(&self, part: Option<&str>) -> Vec<&PaperPart> {
        let is_asked_anyway = |p: &PaperPart| p.search.is_empty() && !p.by_name && !p.live;
        let asked = |p: &&PaperPart| part.map_or_else(|| is_asked_anyway(p), |name| p.name == name);
        self.parts.iter().filter(asked).collect()
    }

    /// Names of the requested parts that are made under fewer seeds than `seeds`, each with its number of seeds.
    pub fn parts_under_fewer_seeds(&self, part: Option<&str>, seeds: u64) -> Vec<(&str, u64)> {
        let parts = self.parts(part).into_iter();
        let limits = parts.filter_map(|part| Some((part.name.as_str(), part.seeds?)));
        limits.filter(|(_, most)| *most < seeds).collect()
    }

    /// Names of a part's cells.
    pub(super) fn cells_of(&self, part: &PaperPart) -> Vec<String> {
        part.cells.iter().flat_map(|pattern| self.expand(pattern)).collect()
    }

    /// All names that a pattern stands for.
    pub(super) fn expand(&self, pattern: &str) -> Vec<String> {
        expand(pattern, &self.lists)
    }

    /// Finds the entries of a table whose pattern matches a case.
    pub(super) fn of_case<'a>(
        &'a self,
        of: &'a BTreeMap<String, Vec<String>>,
        case: &'a str,
    ) -> impl Iterator<Item = &'a String> + 'a {
        of.iter()
            .filter(move |(pattern, _)| matches(pattern, case, &self.lists))
            .flat_map(|(_, t)| t)
    }

    /// A cell by its case, `EXPERIMENT[/SETTING…]/SCHEDULER`, with more settings.
    pub(super) fn cell(&self, case: &str, more: &[String]) -> Result<SweepCell, InputError> {
        let words: Vec<&str> = case.split('/').collect();
        let (experiment, settings, scheduler) = match &words[..] {
            [experiment, settings @ .., scheduler] => (*experiment, settings, *scheduler),
            _ => (case, &[][..], ""),
        };
        let mut set = vec![format!("{}={scheduler}", self.scheduler)];
        set.extend(settings.iter().flat_map(|word| self.settings.get(*word)).flatten().cloned());
        set.extend(more.iter().cloned());
        SweepCell::load(case, experiment, &set)
    }

    /// Settings that a factor changes in a cell.
    pub(super) fn settings(&self, factor: &ReadingFactor, case: &str) -> Vec<String> {
        let only = factor.only.as_deref();
        if only.is_some_and(|only| case.rsplit('/').next() != Some(only)) {
            return Vec::new();
        }
        self.of_case(&factor.set, case).cloned().collect()
    }

    /// Cells that a factor replaces, with their replacements.
    pub(super) fn stand_ins(&self, factor: &ReadingFactor) -> BTreeMap<String, String> {
        let pairs = factor.cells.iter();
        pairs
            .flat_map(|(of, others)| self.expand(of).into_iter().zip(self.expand(others)))
            .collect()
    }

    /// Whether a factor can change the verdict on a claim: it changes the claim's figure, or one of its cells.
    pub(super) fn concerns(&self, factor: &ReadingFactor, claim: &PaperClaim) -> bool {
        let mut figures = std::iter::once(&claim.metric).chain(&claim.per);
        let stand_ins = self.stand_ins(factor);
        let is_changed = |case: String| {
            let without_last = case.rsplit_once('/').map_or(&*case, |(words, _)| words);
            let mut words = factor.words.keys();
            stand_ins.contains_key(&case)
                || !self.settings(factor, &case).is_empty()
                || words.any(|pattern| matches(pattern, without_last, &self.lists))
        };
        figures.any(|name| factor.metrics.contains_key(name))
            || claim.patterns().iter().flat_map(|pattern| self.expand(pattern)).any(is_changed)
    }

    /// The factor with this name.
    pub(super) fn factor(&self, name: &str) -> Option<&ReadingFactor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    /// The factors of the recorded best reading.
    ///
    /// # Errors
    ///
    /// A name that no factor has.
    pub(super) fn best_factors(&self, best: &BestReading) -> Result<Vec<ReadingFactor>, String> {
        let named = |name: &String| {
            let (whole, only) =
                name.split_once('@').map_or((&**name, None), |(n, of)| (n, Some(of)));
            let factor = self.factor(whole).ok_or_else(|| name.clone())?;
            Ok(only.map_or_else(|| factor.clone(), |only| factor.only_of(only)))
        };
        best.factors.iter().map(named).collect()
    }

    /// Printed value of a figure in a cell, with its table; `None` if the paper prints no value.
    pub(super) fn printed(&self, case: &str, metric: &str) -> Option<(f64, &PrintedTable)> {
        self.printed.iter().find_map(|table| {
            let column = table.metrics.iter().position(|m| m == metric)?;
            Some((*table.rows.get(case)?.get(column)?, table))
        })
    }

    /// Value of a figure in a cell that the paper does not print, from the field `refit`; `None` if there is no such value.
    pub(super) fn refit(&self, case: &str, metric: &str) -> Option<f64> {
        self.refit.iter().find_map(|table| {
            let column = table.metrics.iter().position(|m| m == metric)?;
            table.rows.get(case)?.get(column).copied()
        })
    }

    /// Reasons for the tolerances of printed figures, each once.
    pub(super) fn reasons(&self) -> Vec<String> {
        let tables = self.printed.iter().map(|table| &table.because);
        let compared = self.compared.iter().map(|comparison| &comparison.because);
        let reasons = tables.chain(compared).filter(|reason| !reason.is_empty());
        unique(reasons.cloned())
    }

    /// Worth of the last decimal digit with which pages show a figure, such as 0.01.
    pub(super) fn last_digit(&self, metric: &str) -> f64 {
        0.1_f64.powi(i32::try_from(self.words_of(metric).1).unwrap_or(2))
    }

    /// The paper's claims; one with words in `each` becomes one claim for each word.
    pub(super) fn claims(&self) -> Vec<PaperClaim> {
        let mut all = Vec::new();
        for claim in &self.claims {
            let words =
                if claim.each.is_empty() { vec![String::new()] } else { claim.each.clone() };
            for (n, word) in words.iter().enumerate() {
                let with = |text: &str| text.replace('$', word);
                all.push(PaperClaim {
                    says: with(&claim.says),
                    case: with(&claim.case),
                    name: with(&claim.name),
                    of: with(&claim.of),
                    than: claim.than.as_deref().map(with),
                    quote: with(&claim.quote),
                    place: with(&claim.place),
                    resamples: claim
                        .resamples
                        .as_ref()
                        .map(|pair| [with(&pair[0]), with(&pair[1])]),
                    figure: claim.figure.get(n).copied().into_iter().collect(),
                    each: Vec::new(),
                    ..claim.clone()
                });
            }
        }
        all
    }

    /// Heading and number of decimals of a figure for people.
    pub(super) fn words_of<'a>(&'a self, metric: &'a str) -> (&'a str, usize) {
        self.metrics.get(metric).map_or((metric, 2), |(heading, digits)| (heading, *digits))
    }
}

impl FigureTolerance {
    /// Smallest and largest value within the tolerance. A fraction of a printed 0 would be 0: then half a unit of the
    /// second decimal is accepted.
    pub(super) fn band(self, paper: f64) -> (f64, f64) {
        let (below, above) = match self {
            Self::Relative(_) if paper == 0.0 => (0.005, 0.005),
            Self::Relative(part) => (part * paper.abs(), part * paper.abs()),
            Self::Points(points) => (points, points),
            Self::AtMost(part) => (f64::INFINITY, part * paper.abs()),
        };
        (paper - below, paper + above)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{PAPERS, named};
    use super::*;

    /// The built-in data files are consistent: every pattern of a factor matches existing cells, every table has a
    /// reason for its tolerance, and no claim has a tolerance of its own.
    #[test]
    fn the_data_files_are_consistent() {
        for (name, _) in PAPERS {
            let (paper, _) = named(name).expect("it is right");
            assert_eq!(paper.flaws(), Vec::<String>::new(), "{name}");
            let cases: BTreeSet<String> =
                paper.parts.iter().flat_map(|part| paper.cells_of(part)).collect();
            let printed = paper.printed.iter().map(|table| &table.because);
            let compared = paper.compared.iter().map(|comparison| &comparison.because);
            assert!(printed.chain(compared).all(|reason| !reason.is_empty()), "{name}: no reason");
            for claim in paper.claims() {
                assert!(claim.relative.is_none(), "{name}: a tolerance by no rule: {}", claim.says);
            }
            let unknown = paper.default.iter().find(|name| paper.factor(name).is_none());
            assert_eq!(unknown, None, "{name}: no factor of the default reading");
            let best = paper.best.as_ref().map(|best| paper.best_factors(best));
            assert!(best.is_none_or(|factors| factors.is_ok()), "{name}: the best reading");
            for (factor, pattern) in
                paper.factors.iter().flat_map(|f| f.set.keys().map(move |pattern| (f, pattern)))
            {
                let any = cases.iter().any(|case| matches(pattern, case, &paper.lists));
                assert!(any, "{}: {pattern} is no cell", factor.name);
            }
            for (factor, (of, others)) in
                paper.factors.iter().flat_map(|f| f.cells.iter().map(move |pair| (f, pair)))
            {
                let [of, others] = [of, others].map(|pattern| paper.expand(pattern));
                assert_eq!(of.len(), others.len(), "{}", factor.name);
                let unknown = of.iter().chain(&others).find(|case| !cases.contains(*case));
                assert_eq!(unknown, None, "{}: that is no cell", factor.name);
            }
        }
    }

    /// Every cell of the built-in papers can be loaded, since one that can't ends the whole reproduction. Cells that
    /// need data which we can't ship are not tested.
    #[test]
    fn every_cell_of_an_experiment_can_be_loaded() {
        for (name, _) in PAPERS {
            let (paper, _) = named(name).expect("it is right");
            let of_experiments = paper.parts.iter().filter(|part| part.own.is_none());
            for case in of_experiments.flat_map(|part| paper.cells_of(part)) {
                let wanted = |word: &str| paper.settings.get(word).into_iter().flatten();
                if case.split('/').flat_map(wanted).any(|set| set.contains("$DATA")) {
                    continue;
                }
                if let Err(error) = paper.cell(&case, &[]) {
                    let error = error.to_string();
                    assert!(error.contains("and it is not here"), "{name}: {case}: {error}");
                }
            }
        }
    }
}
