//! Tables of a comparison, for people and for programs.

use dormouse_estimate::Estimate;
use dormouse_view::{TableColumn, TypedTable};

use super::{FigurePair, SchedulerComparison};
use crate::sweep::Samples;

impl SchedulerComparison {
    /// Table for people: each figure and its difference.
    pub fn table(&self, samples: &Samples) -> TypedTable {
        self.table_of(samples, true)
    }

    /// The same table for a page, which names a single experiment elsewhere.
    pub(super) fn page_table(&self, samples: &Samples) -> TypedTable {
        self.table_of(samples, self.on.len() > 1)
    }

    fn table_of(&self, samples: &Samples, names_experiments: bool) -> TypedTable {
        let mut table = TypedTable::with_rows(self.pairs(samples, &self.measures(samples).told));
        if names_experiments {
            table = table.column(TableColumn::text("experiment"), |pair| pair.on);
        }
        table
            .column(TableColumn::text("figure"), |pair| pair.measure.heading())
            .column(TableColumn::text(self.compared), |pair| pair.scheduler)
            .column(TableColumn::text("mean [95 % interval]"), FigurePair::figure_in_words)
            .column(TableColumn::text(format!("against {}", self.first())), FigurePair::in_words)
            .column(TableColumn::text("lower under"), |pair| {
                pair.difference.map(|d| format!("{} of {} seeds", pair.lower, d.n))
            })
            .into()
    }

    /// Table for programs, `table.csv`: exact values, and also figures that were zero in all runs.
    pub fn exact(&self, samples: &Samples) -> TypedTable {
        type Of = fn(&FigurePair<'_>) -> Option<Estimate>;
        let measures = self.measures(samples).in_files();
        let mut table = TypedTable::with_rows(self.pairs(samples, &measures))
            .column(TableColumn::text("case"), |pair| format!("{}/{}", pair.on, pair.scheduler))
            .column(TableColumn::text("metric"), |pair| pair.measure.metric.name)
            .column(TableColumn::text("against"), |pair| {
                pair.difference.map(|_| self.first().to_owned())
            });
        let figures: [([&str; 3], Of); 3] = [
            (["mean", "ci95_low", "ci95_high"], |pair| Some(pair.figure)),
            (["difference", "difference_ci95_low", "difference_ci95_high"], |pair| pair.difference),
            (["relative", "relative_ci95_low", "relative_ci95_high"], |pair| pair.relative),
        ];
        for ([mean, low, high], of) in figures {
            table = table
                .column(TableColumn::number(mean), |pair| of(pair).map(|e| e.mean))
                .column(TableColumn::number(low), |pair| Some(of(pair)?.ci95?.0))
                .column(TableColumn::number(high), |pair| Some(of(pair)?.ci95?.1));
        }
        table
            .column(TableColumn::count("lower"), |pair| pair.difference.map(|_| pair.lower))
            .column(TableColumn::count("n"), |pair| pair.figure.n)
            .into()
    }
}
