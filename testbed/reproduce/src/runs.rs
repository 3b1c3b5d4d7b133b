//! Tables with one row for each run and all its figures: `samples.csv`, and `samples.parquet` if
//! that is built in.

use std::collections::BTreeSet;

use dormouse_analysis::{METRICS, RunFigure, RunSample};
use dormouse_view::{ColumnKind, TableCell, TableColumn, TypedTable};

use crate::measures::figure;

/// Sentence on the files with the figures of all runs, for a page.
pub(crate) const FILES: &str = if TypedTable::WRITES_PARQUET {
    "samples.csv and samples.parquet have a row for each run, with its seed and all its figures: times in seconds, money in dollars."
} else {
    "samples.csv has a row for each run, with its seed and all its figures: times in seconds, money in dollars."
};

/// Name of the column of seeds.
const SEED: &str = "seed";

/// One run as a row of the table of runs.
pub(crate) struct RunRow<'a> {
    /// Values of the label columns, which identify the run together with its seed.
    pub(crate) labels: Vec<String>,
    /// Seed of the run.
    pub(crate) seed: u64,
    /// The figures of the run.
    pub(crate) sample: &'a RunSample,
}

/// Table of the given runs: columns of labels, the seed unless it is a label, and a column for each
/// figure that some run has. Figures of job batches are means over a run's batches.
pub(crate) fn table(labels: Vec<TableColumn>, runs: Vec<RunRow<'_>>) -> TypedTable {
    let names = |run: &RunRow<'_>| {
        let figures = run.sample.figures.keys().chain(run.sample.batches.keys());
        figures.cloned().collect::<Vec<_>>()
    };
    let all: BTreeSet<String> = runs.iter().flat_map(names).collect();
    // Figures with names for people come first, in their order.
    let known = METRICS.iter().map(|metric| metric.name.to_owned()).filter(|n| all.contains(n));
    let others = all.iter().filter(|name| RunFigure::named(name).is_none()).cloned();
    let figures: Vec<_> = known.chain(others).collect();
    let has_seed = labels.iter().any(|label| label.name == SEED);
    let mut table = TypedTable::with_rows(runs);
    for (n, label) in labels.into_iter().enumerate() {
        let kind = label.kind;
        table = table.column(label, |run| match (kind, &run.labels[n]) {
            (ColumnKind::Text, text) => TableCell::text(text),
            (ColumnKind::Count, text) => {
                TableCell::maybe(text.parse::<u64>().ok(), TableCell::count)
            }
            (_, text) => TableCell::maybe(text.parse().ok(), TableCell::number),
        });
    }
    if !has_seed {
        table = table.column(TableColumn::count(SEED), |run| run.seed);
    }
    for name in figures {
        table = table.column(TableColumn::number(&name), |run| figure(run.sample, &name));
    }
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_row_with_all_its_figures() {
        let sample = |figures: &[(&str, f64)], batches: &[f64]| RunSample {
            figures: figures.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect(),
            batches: [("response_s".to_owned(), batches.to_vec())].into(),
            steps: 0,
            decisions: String::new(),
        };
        let (first, second) = (
            sample(&[("steals", 2.0), ("makespan_s", 900.25)], &[1.0, 4.0]),
            sample(&[("steals", 0.0)], &[]),
        );
        let runs = |labels: [&str; 2]| {
            let labels: Vec<_> = labels.map(str::to_owned).into();
            let run = |(seed, sample)| RunRow { labels: labels.clone(), seed, sample };
            [(1, &first), (2, &second)].map(run).into()
        };
        let columns = vec![TableColumn::text("experiment"), TableColumn::number("scheduler.alpha")];
        assert_eq!(
            table(columns, runs(["j60", "0.10"])).to_csv(),
            "experiment,scheduler.alpha,seed,makespan_s,response_s,steals\n\
             j60,0.1,1,900.25,2.5,2\nj60,0.1,2,,,0\n"
        );
        let by_seed = table(
            vec![TableColumn::text("experiment"), TableColumn::count(SEED)],
            runs(["j60", "7"]),
        );
        assert!(by_seed.to_csv().starts_with("experiment,seed,makespan_s,"), "one column of seeds");
        assert!(by_seed.to_csv().contains("j60,7,900.25"));
    }
}
