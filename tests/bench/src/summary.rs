//! Tables of benchmarks and of their figures, for people.

use dormouse_view::{TableCell, TableColumn, Terminal, TypedTable, number::short};

use crate::benchmarks::Benchmarks;
use crate::figure::Figure;
use crate::record::Record;

/// A table of all benchmarks, one line for each figure.
#[must_use]
pub fn list(benchmarks: &Benchmarks, terminal: Terminal) -> String {
    let figures = benchmarks.all.iter().flat_map(|benchmark| {
        benchmark.figures.iter().map(move |figure| (benchmark.name.as_str(), figure))
    });
    let table: TypedTable = TypedTable::with_rows(figures)
        .column(TableColumn::text("benchmark"), |(benchmark, _)| *benchmark)
        .column(TableColumn::text("figure"), |(_, figure)| figure.name.as_str())
        .column(TableColumn::text("what it is"), |(_, figure)| figure.what.as_str())
        .column(TableColumn::text("unit"), |(_, figure)| figure.unit.as_str())
        .column(TableColumn::text("compared with"), |(_, figure)| figure.peer.as_str())
        .column(TableColumn::text("bound"), |(_, figure)| figure.bound.to_string())
        .into();
    table.to_text(terminal)
}

/// A table of the figures of a record, one line for each figure.
#[must_use]
pub fn measured(record: &Record, terminal: Terminal) -> String {
    let table: TypedTable = TypedTable::with_rows(&record.figures)
        .column(TableColumn::text("figure"), |figure| figure.name.as_str())
        .column(TableColumn::text("value"), |figure| amount(figure.value.median, &figure.unit))
        .column(TableColumn::text("compared with"), |figure| figure.peer.as_str())
        .column(TableColumn::text("its value"), |figure| {
            amount(figure.peer_value.median, &figure.unit)
        })
        .column(TableColumn::text("ratio"), ratio)
        .column(TableColumn::text("least to greatest"), |figure| range(figure))
        .column(TableColumn::text("bound"), |figure| figure.bound.to_string())
        .column(TableColumn::count("samples"), |figure| figure.repetitions)
        .into();
    table.to_text(terminal)
}

/// A figure's ratio as a cell, marked as good or bad news.
pub(crate) fn ratio(figure: &&Figure) -> TableCell {
    TableCell::text(short(figure.ratio.median)).verdict(!figure.is_worse())
}

/// The least and the greatest ratio of a figure, as text.
pub(crate) fn range(figure: &Figure) -> String {
    format!("{} to {}", short(figure.ratio.min), short(figure.ratio.max))
}

/// A value with its unit, to three significant digits.
pub(crate) fn amount(x: f64, unit: &str) -> String {
    format!("{} {unit}", short(x))
}
