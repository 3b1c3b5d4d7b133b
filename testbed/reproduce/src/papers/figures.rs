//! Figures of a reproduction, ours beside the paper's.

use std::collections::BTreeSet;

use dormouse_estimate::{Estimate, Said, Series, Verdict};

use super::as_printed::{AsPrinted, PairedSamples, as_printed, printed_zero};
use super::claim::{CellCombination, ClaimMeasure};
use super::claims::{compared as compared_series, ratio_of_means};
use super::paper::{FigureTolerance, PaperEvaluation, PaperPart, PrintedComparison, PrintedTable};
use super::results::CellResults;

/// A figure of ours, with the paper's if it printed one.
#[derive(Clone, Debug)]
pub struct FigureRow {
    /// Part of the paper that has the figure, such as `table-4`.
    pub part: String,
    /// Name of the cell, or of the comparison of two cells.
    pub case: String,
    /// Name of the figure.
    pub metric: String,
    /// The paper's value and its tolerance; `None` if the paper prints no value.
    pub paper: Option<(f64, FigureTolerance)>,
    /// A value that the paper does not print, computed from its data or by its method; `None` if there is none.
    pub refit: Option<f64>,
    /// Our estimate of the figure.
    pub ours: Estimate,
    /// Whether the figure is an input of the run, not a result.
    pub is_input: bool,
    /// Verdict on the printed figure: our estimate is within its tolerance, beyond it, or open.
    /// `None` without a printed figure, and for an input that is judged with another scheduler of
    /// the same experiment.
    pub verdict: Option<Verdict>,
    /// The printed figure beside the range of means of as many of our runs as the paper averaged; `None` if there is no such range.
    pub as_printed: Option<AsPrinted>,
}

impl FigureRow {
    /// Difference of our estimate from the paper's value, as a fraction of that value; `None` if the paper prints no value.
    pub fn difference(&self) -> Option<f64> {
        self.paper.and_then(|(paper, _)| self.ours.relative_to(paper))
    }

    /// Whether our whole interval is beyond the tolerance; `None` if there is no verdict.
    pub fn is_beyond(&self) -> Option<bool> {
        self.verdict.map(|verdict| verdict == Verdict::Fails)
    }

    /// The verdict as a word; empty if there is no verdict.
    pub const fn word(&self) -> &'static str {
        match self.verdict {
            _ if self.ours.is_saturated && self.paper.is_some() => "saturated",
            Some(Verdict::Holds) => "within",
            Some(Verdict::Fails) => "beyond",
            Some(verdict) => verdict.words(),
            None => "",
        }
    }
}

/// Rows of all figures of these parts of a paper, in the order of the parts' cells.
pub(super) fn rows(
    paper: &PaperEvaluation,
    parts: &[&PaperPart],
    results: &CellResults,
) -> Vec<FigureRow> {
    let (mut rows, mut seen, mut inputs) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for part in parts {
        for case in paper.cells_of(part) {
            for metric in paper.of_case(&part.metrics, &case) {
                let Some(series) = results.series(&case, metric) else { continue };
                let Some(ours) = series.estimate() else { continue };
                if !seen.insert((case.clone(), metric.clone())) {
                    continue;
                }
                let printed = paper.printed(&case, metric);
                let is_input = printed.is_some_and(|(_, table)| table.inputs.contains(metric));
                let experiment = case.rsplit_once('/').map_or(&*case, |(experiment, _)| experiment);
                let is_judged = !is_input || inputs.insert((experiment.to_owned(), metric.clone()));
                let shown = printed.filter(|_| is_judged).map(|(value, table)| {
                    judge_figure(paper, (&case, metric), (value, table), (&ours, &series))
                });
                let (verdict, as_printed) = shown.unzip();
                rows.push(FigureRow {
                    part: part.name.clone(),
                    case: case.clone(),
                    metric: metric.clone(),
                    paper: printed.map(|(value, table)| {
                        (value, table.tolerance_of(metric, (value, paper.last_digit(metric))))
                    }),
                    refit: paper.refit(&case, metric),
                    ours,
                    is_input,
                    verdict,
                    as_printed: as_printed.flatten(),
                });
            }
            rows.extend(compare_cells(paper, part, &case, results));
        }
    }
    rows
}

/// Verdict on a printed figure, and whether that figure could be the mean of as few of our runs as the paper averaged.
fn judge_figure(
    paper: &PaperEvaluation,
    (case, metric): (&str, &str),
    (printed, table): (f64, &PrintedTable),
    (ours, series): (&Estimate, &Series),
) -> (Verdict, Option<AsPrinted>) {
    let runs = table.runs.or(paper.runs);
    let digit = paper.last_digit(metric);
    let (low, high) = table.tolerance_of(metric, (printed, digit)).band(printed);
    let (mut verdict, _) = ours.shows(Said::Within { low, high }, "");
    let zero = runs.filter(|_| printed == 0.0 && table.is_count(metric));
    if let Some((of_zero, _)) = zero.and_then(|runs| printed_zero(&series.each, runs)) {
        verdict = of_zero;
    }
    let few = runs.filter(|_| !series.are_batches && series.whole.is_none()).and_then(|runs| {
        as_printed(
            &[PairedSamples::alone(&series.each)],
            (ClaimMeasure::Value, CellCombination::Mean),
            (printed, digit),
            (runs, &format!("{case} {metric}")),
        )
    });
    (verdict, few)
}

/// The printed comparisons whose second cell is this cell.
fn compare_cells(
    paper: &PaperEvaluation,
    part: &PaperPart,
    cell: &str,
    results: &CellResults,
) -> Vec<FigureRow> {
    let row = |comparison: &PrintedComparison| {
        let [cases, of, than] = [&comparison.case, &comparison.of, &comparison.than]
            .map(|pattern| paper.expand(pattern));
        let n = than.iter().position(|than| than == cell)?;
        let printed = |case: &str| paper.printed(case, &comparison.from);
        let runs = |case: &str| printed(case).and_then(|(_, table)| table.runs.or(paper.runs));
        let series = |case: &str| results.series(case, &comparison.from);
        let (of, case) = (of.get(n)?, cases.get(n)?);
        let below = |pair| ClaimMeasure::PercentBelow.value(pair);
        let (ours_of, ours_than) = (series(of)?, series(cell)?);
        let of_means = (ClaimMeasure::PercentBelow, CellCombination::Mean);
        let ours = match ratio_of_means(&[ours_of.clone(), ours_than.clone()], of_means) {
            Some(ours) => ours,
            None => compared_series(&ours_of, &ours_than, of_means.0)?.estimate()?,
        };
        let printed = below([printed(of)?.0, printed(cell)?.0]);
        let (low, high) = comparison.tolerance.band(printed);
        let has_runs = !ours_of.are_batches && ours_of.whole.is_none();
        let few = runs(of).filter(|_| has_runs).and_then(|runs| {
            as_printed(
                &[PairedSamples::new(&ours_of.each, &ours_than.each)],
                of_means,
                (printed, paper.last_digit(&comparison.metric)),
                (runs, &format!("{case} {}", comparison.metric)),
            )
        });
        Some(FigureRow {
            part: part.name.clone(),
            case: case.clone(),
            metric: comparison.metric.clone(),
            paper: Some((printed, comparison.tolerance)),
            refit: None,
            ours,
            is_input: false,
            verdict: Some(ours.shows(Said::Within { low, high }, "").0),
            as_printed: few,
        })
    };
    paper.compared.iter().filter_map(row).collect()
}

/// Number of printed figures by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FigureTally {
    /// Number of figures for which our whole interval is within the tolerance.
    pub within: usize,
    /// Number of figures for which our whole interval is beyond the tolerance.
    pub beyond: usize,
    /// Number of figures whose verdict is open: our interval is partly within the tolerance and partly beyond it.
    pub open: usize,
    /// Number of figures whose printed value could be the mean of as few of our runs as the paper averaged.
    pub as_printed: usize,
    /// Number of figures for which [`Self::as_printed`] could be tested, because their number of
    /// averaged runs is known.
    pub of_few_runs: usize,
}

impl FigureTally {
    /// Counts the verdicts on printed results in `rows`, for the figure `metric` or, if `None`, for all figures; if `inputs` is
    /// true, on inputs instead of results.
    pub fn new(rows: &[FigureRow], metric: Option<&str>, inputs: bool) -> Self {
        let rows = rows
            .iter()
            .filter(|row| row.is_input == inputs && metric.is_none_or(|name| row.metric == name));
        let mut tally = Self::default();
        for row in rows {
            match row.verdict {
                Some(Verdict::Holds) => tally.within += 1,
                Some(Verdict::Fails) => tally.beyond += 1,
                Some(_) => tally.open += 1,
                None => {}
            }
            tally.of_few_runs += usize::from(row.as_printed.is_some());
            tally.as_printed += usize::from(row.as_printed.is_some_and(|few| few.is_within));
        }
        tally
    }

    /// Number of figures that were judged.
    pub const fn all(self) -> usize {
        self.within + self.beyond + self.open
    }
}

/// Number of printed figures beyond their tolerance, and number of all judged ones, for the figure `metric` or, if `None`, for all
/// figures. Inputs are left out.
pub fn beyond(rows: &[FigureRow], metric: Option<&str>) -> (usize, usize) {
    let tally = FigureTally::new(rows, metric, false);
    (tally.beyond, tally.all())
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::of_runs;
    use super::*;

    /// Figure rows of a paper that prints one figure of the cells e/a and e/b; `table` has further settings of the
    /// printed table, in TOML.
    fn rows_of(table: &str, printed: [f64; 2], samples: [&[f64]; 2]) -> Vec<FigureRow> {
        let [a, b] = printed;
        let data = format!(
            "name = \"p\"\ntitle = \"\"\nsource = \"\"\nabout = []\nsamples = \"\"\nmore = \"\"\nruns = 3\n\
             [[part]]\nname = \"t\"\ntitle = \"\"\ncells = [\"e/{{a,b}}\"]\nmetrics = {{ \"*\" = [\"x\"] }}\n\
             [[printed]]\nmetrics = [\"x\"]\ntolerance = {{ relative = 0.15 }}\n{table}\n\
             [printed.rows]\n\"e/a\" = [{a:?}]\n\"e/b\" = [{b:?}]\n\
             [[refit]]\nsource = \"by hand\"\nmetrics = [\"x\"]\n[refit.rows]\n\"e/b\" = [7.0]\n"
        );
        let paper: PaperEvaluation = toml::from_str(&data).expect("it is right");
        let results = of_runs("x", &[("e/a", samples[0]), ("e/b", samples[1])]);
        rows(&paper, &paper.parts(None), &results)
    }

    #[test]
    fn a_figure_is_judged_by_its_whole_interval_and_by_few_runs() {
        let wide: Vec<f64> = (0..40).map(|n| 60.0 + 2.0 * f64::from(n)).collect();
        let rows = rows_of("", [100.0, 76.0], [&[100.0, 101.0, 99.0, 100.0], &wide]);
        let words: Vec<_> = rows.iter().map(FigureRow::word).collect();
        // The second: 99 on average, and three of its runs may well come to 76.
        assert_eq!(words, ["within", "beyond"], "{rows:?}");
        assert!(rows.iter().all(|row| row.as_printed.is_some_and(|few| few.is_within)), "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.refit).collect::<Vec<_>>(), [None, Some(7.0)]);
        let tally = FigureTally { within: 1, beyond: 1, open: 0, as_printed: 2, of_few_runs: 2 };
        assert_eq!(FigureTally::new(&rows, None, false), tally);
        assert_eq!(beyond(&rows, Some("y")), (0, 0));
    }

    #[test]
    fn an_input_is_judged_once_for_its_experiment_and_apart() {
        let rows = rows_of("inputs = [\"x\"]", [1.0, 1.0], [&[1.0, 1.0], &[9.0, 9.0]]);
        assert_eq!(rows.iter().map(FigureRow::word).collect::<Vec<_>>(), ["within", ""]);
        assert_eq!(
            (FigureTally::new(&rows, None, false).all(), FigureTally::new(&rows, None, true).all()),
            (0, 1)
        );
    }

    #[test]
    fn counts_have_their_own_tolerance_and_a_printed_zero_is_judged_by_its_probability() {
        let seldom: Vec<f64> = (0..40).map(|n| if n % 4 == 0 { 1.0 } else { 0.0 }).collect();
        let rows = rows_of("counts = [\"x\"]", [0.0, 0.0], [&seldom, &[2.0; 40]]);
        assert_eq!(rows.iter().map(FigureRow::word).collect::<Vec<_>>(), ["within", "beyond"]);
        // A count that is printed may be half as large again, and no more.
        let rows = rows_of("counts = [\"x\"]", [2.0, 2.0], [&[2.9; 4], &[3.1; 4]]);
        assert_eq!(rows.iter().map(FigureRow::word).collect::<Vec<_>>(), ["within", "beyond"]);
        // Of anything but a count only zero itself is near zero.
        let rows = rows_of("", [0.0, 0.0], [&seldom, &[0.0; 40]]);
        assert_eq!(rows.iter().map(FigureRow::word).collect::<Vec<_>>(), ["beyond", "within"]);
    }

    #[test]
    fn what_is_said_to_be_no_more_is_judged_on_one_side() {
        let (low, high) = FigureTolerance::AtMost(0.1).band(10.0);
        let shown = |samples: &[f64]| {
            Estimate::from_samples(samples).map(|ours| ours.shows(Said::Within { low, high }, "").0)
        };
        assert_eq!(shown(&[1.0, 1.1]), Some(Verdict::Holds));
        assert_eq!(shown(&[12.0, 12.1]), Some(Verdict::Fails));
    }
}
