//! Tables of a sweep, for people and for programs.

use std::collections::BTreeSet;

use dormouse_analysis::{METRICS, RunFigure, RunSample, series};
use dormouse_estimate::Estimate;
use dormouse_view::{TableCell as Shown, TableColumn, TypedTable};

use super::grid::SEED;
use super::{ParameterSweep, SampleSource as _, Samples};
use crate::measures::{ShownFigure, ShownFigures};
use crate::runs::{self, RunRow};

impl ParameterSweep {
    /// Selects the figures of a sweep that are shown to people.
    pub fn measures(samples: &Samples) -> ShownFigures {
        ShownFigures::of_runs(samples, &[])
    }

    /// Table of the sweep's figures for people.
    pub fn table(&self, samples: &Samples) -> TypedTable {
        let columns = Self::measures(samples).told.into_iter().map(|measure| {
            let column = TableColumn::mean(measure.heading()).digits(measure.digits());
            (column, measure.metric.name, Some(measure))
        });
        self.with_means(samples, columns)
    }

    /// Table for programs, also with figures that are zero in all runs; each in its own unit.
    pub fn exact(&self, samples: &Samples) -> TypedTable {
        let there = figure_names(samples);
        let metrics = Self::measures(samples).in_files().into_iter().map(|measure| measure.metric);
        let columns = metrics.filter(|metric| there.contains(metric.name)).map(|metric| {
            (TableColumn::mean(metric.heading).digits(metric.digits), metric.name, None)
        });
        self.with_means(samples, columns)
    }

    /// Table with one row for each cell: its values of the keys, and the means of the figures of `columns`, in the unit
    /// of the shown figure if a column has one.
    fn with_means(
        &self,
        samples: &Samples,
        columns: impl Iterator<Item = (TableColumn, &'static str, Option<ShownFigure>)>,
    ) -> TypedTable {
        let mut table = TypedTable::with_rows(self.values.iter().zip(samples));
        for (n, key) in self.keys.iter().enumerate() {
            table = table.column(TableColumn::text(key), |(values, _)| values[n].clone());
        }
        for (column, name, measure) in columns {
            let value = |x: f64| measure.map_or(x, |measure| measure.value(x));
            table = table.column(column, |(_, samples)| {
                estimate(samples, name).map(|e| {
                    let interval = e.ci95.map(|(low, high)| (value(low), value(high)));
                    Shown::mean(value(e.mean), interval, e.n)
                })
            });
        }
        table.into()
    }

    /// The content of `table.csv`. Several keys, and their values in the same order, are joined by
    /// semicolons.
    pub fn csv(&self, samples: &Samples) -> String {
        let there = figure_names(samples);
        // Figures with names for people come first, in their order.
        let known = METRICS.iter().map(|metric| metric.name).filter(|name| there.contains(*name));
        let others = there.iter().copied().filter(|name| RunFigure::named(name).is_none());
        let metrics: Vec<&str> = known.chain(others).collect();
        let lines = self.values.iter().zip(samples).flat_map(|(values, samples)| {
            let of = |name| Some((values.join(";"), name, estimate(samples, name)?));
            metrics.iter().copied().filter_map(of).collect::<Vec<_>>()
        });
        let number = |name: &str| TableColumn::number(name).file_digits(6);
        let table = TypedTable::with_rows(lines)
            .column(TableColumn::text("key"), |_| self.keys.join(";"))
            .column(TableColumn::text("value"), |(values, ..)| values.clone())
            .column(TableColumn::text("metric"), |(_, name, _)| *name)
            .column(number("mean"), |(_, _, of)| of.mean)
            .column(number("ci95_low"), |(_, _, of)| of.ci95.map(|(low, _)| low))
            .column(number("ci95_high"), |(_, _, of)| of.ci95.map(|(_, high)| high))
            .column(TableColumn::count("n"), |(_, _, of)| of.n);
        TypedTable::from(table).to_csv()
    }

    /// Table of all runs with their figures and the values of their keys, one row each; seeds are 1
    /// to `seeds`, unless they are among the keys.
    pub fn runs(&self, samples: &Samples, seeds: u64) -> TypedTable {
        let key = |(n, key): (usize, &String)| {
            let is_number = self.values.iter().all(|values| values[n].parse::<f64>().is_ok());
            let column = match is_number {
                true if key == SEED => TableColumn::count(key),
                true => TableColumn::number(key),
                false => TableColumn::text(key),
            };
            column.named(key)
        };
        let keys = self.keys.iter().enumerate().map(key);
        let labels = [TableColumn::text("experiment")].into_iter().chain(keys).collect();
        let cells = self.cells.iter().zip(&self.values).zip(samples);
        let runs = cells.flat_map(|((cell, values), samples)| {
            cell.seeds(&(1..=seeds)).zip(samples).map(move |(seed, sample)| {
                let labels = [&cell.name].into_iter().chain(values).cloned().collect();
                RunRow { labels, seed, sample }
            })
        });
        runs::table(labels, runs.collect())
    }
}

/// Names of all figures of these samples.
fn figure_names(samples: &Samples) -> BTreeSet<&str> {
    let all = || samples.iter().flatten();
    let (figures, batches) =
        (all().flat_map(|s| s.figures.keys()), all().flat_map(|s| s.batches.keys()));
    figures.chain(batches).map(String::as_str).collect()
}

/// Mean of a figure over the runs of a cell; `None` if no run has the figure.
pub(super) fn estimate(samples: &[RunSample], metric: &str) -> Option<Estimate> {
    series(samples, metric).estimate()
}
