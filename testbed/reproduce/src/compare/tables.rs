//! Tables of a comparison, for people and for programs.

use dormouse_estimate::Estimate;
use dormouse_view::{TableCell, TableColumn, TypedTable};

use super::{FigurePair, SchedulerComparison};
use crate::sweep::Samples;

impl SchedulerComparison {
    /// Table for a page: in a row a figure of the first scheduler and of another one, the verdict first.
    pub(super) fn page_table(&self, samples: &Samples) -> TypedTable {
        let pairs = self.pairs(samples, &self.measures(samples).told);
        let first = self.first();
        let of_first = |pair: &FigurePair<'_>| {
            let is_same = |other: &&FigurePair<'_>| {
                (other.on, other.scheduler) == (pair.on, first)
                    && other.measure.name() == pair.measure.name()
            };
            pairs.iter().find(is_same).map(FigurePair::figure_in_words)
        };
        let others = pairs.iter().filter(|pair| pair.scheduler != first);
        let mut table = TypedTable::with_rows(others)
            .column(TableColumn::text("figure"), |pair| pair.measure.heading());
        if self.on.len() > 1 {
            table = table.column(TableColumn::text("experiment"), |pair| pair.on);
        }
        let (verdict, own) = match self.schedulers.as_slice() {
            [_, other] => (format!("{other} is"), other.clone()),
            _ => {
                table = table.column(TableColumn::text(self.compared), |pair| pair.scheduler);
                ("is".to_owned(), "its mean [95 % interval]".to_owned())
            }
        };
        table
            .column(TableColumn::text(verdict), |pair| {
                let (word, tone) = pair.verdict();
                TableCell::text(word).toned(tone)
            })
            .column(TableColumn::text(format!("against {first}")), |pair| pair.change_in_words())
            .column(TableColumn::text(first), |pair| of_first(pair))
            .column(TableColumn::text(own), |pair| pair.figure_in_words())
            .column(TableColumn::text("lower under"), |pair| {
                pair.difference.map(|d| format!("{} of {} seeds", pair.lower, d.n))
            })
            .into()
    }

    /// Table for people: each figure and its difference.
    pub fn table(&self, samples: &Samples) -> TypedTable {
        TypedTable::with_rows(self.pairs(samples, &self.measures(samples).told))
            .column(TableColumn::text("experiment"), |pair| pair.on)
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
