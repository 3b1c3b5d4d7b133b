//! Tables of a comparison, for people and for programs.

use dormouse_estimate::Estimate;
use dormouse_view::{Column, Table};

use super::{Comparison, Pair};
use crate::sweep::Samples;

impl Comparison {
    /// Table for people: each figure and its difference.
    pub fn table(&self, samples: &Samples) -> Table {
        Table::with_rows(self.pairs(samples, &self.measures(samples).told))
            .column(Column::text("experiment"), |pair| pair.on)
            .column(Column::text("figure"), |pair| pair.measure.heading())
            .column(Column::text(self.compared), |pair| pair.scheduler)
            .column(Column::text("mean [95 % interval]"), Pair::figure_in_words)
            .column(Column::text(format!("against {}", self.first())), Pair::in_words)
            .column(Column::text("lower under"), |pair| {
                pair.difference.map(|d| format!("{} of {} seeds", pair.lower, d.n))
            })
            .into()
    }

    /// Table for programs, `table.csv`: exact values, and also figures that were zero in all runs.
    pub fn exact(&self, samples: &Samples) -> Table {
        type Of = fn(&Pair<'_>) -> Option<Estimate>;
        let measures = self.measures(samples).in_files();
        let mut table = Table::with_rows(self.pairs(samples, &measures))
            .column(Column::text("case"), |pair| format!("{}/{}", pair.on, pair.scheduler))
            .column(Column::text("metric"), |pair| pair.measure.metric.name)
            .column(Column::text("against"), |pair| {
                pair.difference.map(|_| self.first().to_owned())
            });
        let figures: [([&str; 3], Of); 3] = [
            (["mean", "ci95_low", "ci95_high"], |pair| Some(pair.figure)),
            (["difference", "difference_ci95_low", "difference_ci95_high"], |pair| pair.difference),
            (["relative", "relative_ci95_low", "relative_ci95_high"], |pair| pair.relative),
        ];
        for ([mean, low, high], of) in figures {
            table = table
                .column(Column::number(mean), |pair| of(pair).map(|e| e.mean))
                .column(Column::number(low), |pair| Some(of(pair)?.ci95?.0))
                .column(Column::number(high), |pair| Some(of(pair)?.ci95?.1));
        }
        table
            .column(Column::count("lower"), |pair| pair.difference.map(|_| pair.lower))
            .column(Column::count("n"), |pair| pair.figure.n)
            .into()
    }
}
