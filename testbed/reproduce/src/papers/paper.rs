//! What a paper's evaluation is: its data file, read.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::claim::Claim;
use super::factor::{Best, Factor};
use super::own::Own;
use super::pattern::{Lists, expand, matches, unique};
use crate::sweep::Cell;
use dormouse_experiment::InputError;

/// A paper's evaluation: which experiments it is made of, what it printed, what it says of that, and
/// what could explain a difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Paper {
    /// Name of the paper on the command line.
    pub name: String,
    /// What the page is called.
    pub title: String,
    /// Authors and title.
    pub source: String,
    /// Paragraphs for the page: what is measured how, what is not as in the paper.
    pub about: Vec<String>,
    /// What a sample is: `runs under N seeds`, or batches of one run.
    pub samples: String,
    /// What there have to be more of for a narrower interval.
    pub more: String,
    /// Number of runs whose mean each printed figure is; `None` where the paper does not say.
    pub runs: Option<usize>,
    /// Number of seeds where the command line gives none.
    #[serde(default = "ten_seeds")]
    pub seeds: u64,
    /// Named lists of words, for patterns.
    #[serde(default)]
    pub lists: Lists,
    /// What the words of a case between its experiment and its scheduler set; `$DATA` is the folder of
    /// records that is given on the command line.
    #[serde(default)]
    pub settings: BTreeMap<String, Vec<String>>,
    /// The key that the last word of a case sets, which says what schedules.
    #[serde(default = "schedules")]
    pub scheduler: String,
    /// How figures are written for people: the name with the unit, and the digits behind the point.
    #[serde(default)]
    pub metrics: BTreeMap<String, (String, usize)>,
    /// Figures whose axis is no logarithmic one, and begins at 0.
    #[serde(default)]
    pub from_zero: Vec<String>,
    /// Tables and figures.
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
    /// The printed values.
    #[serde(default)]
    pub printed: Vec<Printed>,
    /// Values that the paper does not print and that were computed from its data or by its method,
    /// to compare with.
    #[serde(default)]
    pub refit: Vec<Refit>,
    /// Printed comparisons of two cells.
    #[serde(default)]
    pub compared: Vec<Compared>,
    /// What its text says.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// What could explain a difference.
    #[serde(default, rename = "factor")]
    pub factors: Vec<Factor>,
    /// Plots that are not of a single part.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    /// The cells of bags that are run live.
    #[serde(default)]
    pub live: Vec<String>,
    /// The reading that explains most of the paper, as a search found it.
    pub best: Option<Best>,
    /// The scheduler whose figures stand beside the printed ones of every other.
    pub beside: Option<String>,
}

/// A table or figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Part {
    /// Name of the part, such as `table-4`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Patterns of the part's cells.
    pub cells: Vec<String>,
    /// What is reported of its cells: patterns, and figures by name.
    pub metrics: BTreeMap<String, Vec<String>>,
    /// Whether each cell's run with the median makespan is drawn.
    #[serde(default)]
    pub gantt: bool,
    /// Names and cells of the lines, if the part is a figure.
    #[serde(default)]
    pub lines: Vec<(String, String)>,
    /// What they are over: how the word of a case begins that says it, and what it is called.
    #[serde(default = "loads")]
    pub over: (String, String),
    /// The most seeds that its cells are run under, if it is not of experiments: more would take long and
    /// show no more.
    pub seeds: Option<u64>,
    /// Source of the figures of a part that is not of experiments. Their case is the words of a cell but the last.
    pub own: Option<Own>,
    /// The readings are searched for the one that explains most of these figures, and of the claims. It
    /// takes long: such a part is made only when it is asked for by name.
    #[serde(default)]
    pub search: Vec<String>,
    /// Whether its cells are also played live, once each: on real processes, beside the virtual runs. Such a part is made
    /// only when it is asked for by name.
    #[serde(default)]
    pub live: bool,
    /// Whether the part is made only when it is asked for by name: no claim rests on it.
    #[serde(default)]
    pub by_name: bool,
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
pub struct Printed {
    /// The figures in its columns.
    pub metrics: Vec<String>,
    /// How far ours may be from each column's.
    pub tolerance: Tolerance,
    /// Reason of that tolerance.
    #[serde(default)]
    pub because: String,
    /// Number of runs whose mean each of its figures is, if other than the paper's.
    pub runs: Option<usize>,
    /// Columns that go into a run and do not come out of it: judged apart, and once for each experiment.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Columns that are counts: a printed zero is judged by how likely it is.
    #[serde(default)]
    pub counts: Vec<String>,
    /// A cell, and its values in the order of the columns.
    pub rows: BTreeMap<String, Vec<f64>>,
}

/// Values of a table that the paper does not print.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Refit {
    /// Source of the values, in words.
    pub source: String,
    /// The figures in its columns.
    pub metrics: Vec<String>,
    /// A cell, and its values in the order of the columns.
    pub rows: BTreeMap<String, Vec<f64>>,
}

/// How far ours may be from the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// As a part of the paper's.
    Relative(f64),
    /// In the figure's own unit.
    Points(f64),
    /// Above the paper's, as a part of it: what is said to be no more than that.
    AtMost(f64),
}

/// By how many per cent a figure is lower in one cell than in another, which the paper has from its
/// printed values.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Compared {
    /// Pattern of the comparison's cases in `table.csv`.
    pub case: String,
    /// Name of the comparison's figure in `table.csv`.
    pub metric: String,
    /// The figure that is compared.
    pub from: String,
    /// In these cells.
    pub of: String,
    /// The cells that these are compared with.
    pub than: String,
    /// How far ours may be from the paper's.
    pub tolerance: Tolerance,
    /// Reason of that tolerance.
    #[serde(default)]
    pub because: String,
}

/// A plot of several cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plot {
    /// Heading of the plot.
    pub title: String,
    /// Pattern of the plot's cells.
    pub cells: String,
    /// One figure of each run against another; only one: a strip of runs for each cell.
    pub metrics: Vec<String>,
    /// A line that must not be passed, and what it is called.
    pub limit: Option<(f64, String)>,
}

impl Paper {
    /// The same with a folder of records for `$DATA` in its settings.
    pub(super) fn with_data(mut self, folder: Option<&Path>) -> Self {
        if let Some(folder) = folder {
            // What JSON quotes TOML reads; the quotation marks stand there already.
            let quoted = serde_json::Value::from(folder.to_string_lossy()).to_string();
            for set in self.settings.values_mut().flatten() {
                *set = set.replace("$DATA", &quoted[1..quoted.len() - 1]);
            }
        }
        self
    }

    /// The parts that are asked for: all that need not be asked for by name and neither search nor are live, or the one
    /// of this name.
    pub(super) fn parts(&self, part: Option<&str>) -> Vec<&Part> {
        let is_asked_anyway = |p: &Part| p.search.is_empty() && !p.by_name && !p.live;
        let asked = |p: &&Part| part.map_or_else(|| is_asked_anyway(p), |name| p.name == name);
        self.parts.iter().filter(asked).collect()
    }

    /// The cells of a part, by name.
    pub(super) fn cells_of(&self, part: &Part) -> Vec<String> {
        part.cells.iter().flat_map(|pattern| self.expand(pattern)).collect()
    }

    /// All that a pattern stands for.
    pub(super) fn expand(&self, pattern: &str) -> Vec<String> {
        expand(pattern, &self.lists)
    }

    /// What of a table by patterns is of a case.
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
    pub(super) fn cell(&self, case: &str, more: &[String]) -> Result<Cell, InputError> {
        let words: Vec<&str> = case.split('/').collect();
        let (experiment, settings, scheduler) = match &words[..] {
            [experiment, settings @ .., scheduler] => (*experiment, settings, *scheduler),
            _ => (case, &[][..], ""),
        };
        let mut set = vec![format!("{}={scheduler}", self.scheduler)];
        set.extend(settings.iter().flat_map(|word| self.settings.get(*word)).flatten().cloned());
        set.extend(more.iter().cloned());
        Cell::load(case, experiment, &set)
    }

    /// What a factor sets of a cell.
    pub(super) fn settings(&self, factor: &Factor, case: &str) -> Vec<String> {
        let only = factor.only.as_deref();
        if only.is_some_and(|only| case.rsplit('/').next() != Some(only)) {
            return Vec::new();
        }
        self.of_case(&factor.set, case).cloned().collect()
    }

    /// The cells that a factor takes others for, and these.
    pub(super) fn stand_ins(&self, factor: &Factor) -> BTreeMap<String, String> {
        let pairs = factor.cells.iter();
        pairs
            .flat_map(|(of, others)| self.expand(of).into_iter().zip(self.expand(others)))
            .collect()
    }

    /// Whether a factor can change what a claim is about: its figure, or one of its cells.
    pub(super) fn concerns(&self, factor: &Factor, claim: &Claim) -> bool {
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

    /// The factor of this name.
    pub(super) fn factor(&self, name: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    /// The factors of the best reading that is recorded.
    ///
    /// # Errors
    ///
    /// The name that no factor has.
    pub(super) fn best_factors(&self, best: &Best) -> Result<Vec<Factor>, String> {
        let named = |name: &String| {
            let (whole, only) =
                name.split_once('@').map_or((&**name, None), |(n, of)| (n, Some(of)));
            let factor = self.factor(whole).ok_or_else(|| name.clone())?;
            Ok(only.map_or_else(|| factor.clone(), |only| factor.only_of(only)))
        };
        best.factors.iter().map(named).collect()
    }

    /// The printed value of a figure in a cell, and the table that it stands in.
    pub(super) fn printed(&self, case: &str, metric: &str) -> Option<(f64, &Printed)> {
        self.printed.iter().find_map(|table| {
            let column = table.metrics.iter().position(|m| m == metric)?;
            Some((*table.rows.get(case)?.get(column)?, table))
        })
    }

    /// The value of a figure in a cell that the paper does not print and that was computed.
    pub(super) fn refit(&self, case: &str, metric: &str) -> Option<f64> {
        self.refit.iter().find_map(|table| {
            let column = table.metrics.iter().position(|m| m == metric)?;
            table.rows.get(case)?.get(column).copied()
        })
    }

    /// The reasons of the tolerances of printed figures, each once.
    pub(super) fn reasons(&self) -> Vec<String> {
        let tables = self.printed.iter().map(|table| &table.because);
        let compared = self.compared.iter().map(|comparison| &comparison.because);
        let reasons = tables.chain(compared).filter(|reason| !reason.is_empty());
        unique(reasons.cloned())
    }

    /// Value of the last digit that a figure is printed with.
    pub(super) fn last_digit(&self, metric: &str) -> f64 {
        0.1_f64.powi(i32::try_from(self.words_of(metric).1).unwrap_or(2))
    }

    /// The paper's claims; one with words in `each` becomes a claim for every word.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let mut all = Vec::new();
        for claim in &self.claims {
            let words =
                if claim.each.is_empty() { vec![String::new()] } else { claim.each.clone() };
            for (n, word) in words.iter().enumerate() {
                let with = |text: &str| text.replace('$', word);
                all.push(Claim {
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

    /// A figure for people: its heading and digits.
    pub(super) fn words_of<'a>(&'a self, metric: &'a str) -> (&'a str, usize) {
        self.metrics.get(metric).map_or((metric, 2), |(heading, digits)| (heading, *digits))
    }
}

impl Tolerance {
    /// The smallest and the largest value that are near enough to the paper's. There is no part of a printed
    /// 0, whose digits are two behind the point: half of the last one is near.
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

    /// The data files say what there is: every pattern stands for cells that there are, and no claim is
    /// judged by two rules or by none that it names.
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

    /// A cell that can't be loaded ends the whole reproduction. Those of data that is not ours to ship are left out.
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
