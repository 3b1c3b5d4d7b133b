//! What is said of benchmarks and of their figures, as tables.

use dormouse_view::{Cell, Column, Table, Terminal, number::short};

use crate::benchmarks::Benchmarks;
use crate::figure::Figure;
use crate::record::Record;

/// All benchmarks with their figures, a figure a line.
#[must_use]
pub fn list(benchmarks: &Benchmarks, terminal: Terminal) -> String {
    let figures = benchmarks.all.iter().flat_map(|benchmark| {
        benchmark.figures.iter().map(move |figure| (benchmark.name.as_str(), figure))
    });
    let table: Table = Table::with_rows(figures)
        .column(Column::text("benchmark"), |(benchmark, _)| *benchmark)
        .column(Column::text("figure"), |(_, figure)| figure.name.as_str())
        .column(Column::text("what it is"), |(_, figure)| figure.what.as_str())
        .column(Column::text("unit"), |(_, figure)| figure.unit.as_str())
        .column(Column::text("compared with"), |(_, figure)| figure.peer.as_str())
        .column(Column::text("bound"), |(_, figure)| figure.bound.to_string())
        .into();
    table.to_text(terminal)
}

/// The figures of a record, a figure a line.
#[must_use]
pub fn measured(record: &Record, terminal: Terminal) -> String {
    let table: Table = Table::with_rows(&record.figures)
        .column(Column::text("figure"), |figure| figure.name.as_str())
        .column(Column::text("value"), |figure| amount(figure.value.median, &figure.unit))
        .column(Column::text("compared with"), |figure| figure.peer.as_str())
        .column(Column::text("its value"), |figure| amount(figure.peer_value.median, &figure.unit))
        .column(Column::text("ratio"), ratio)
        .column(Column::text("least to greatest"), |figure| range(figure))
        .column(Column::text("bound"), |figure| figure.bound.to_string())
        .column(Column::count("samples"), |figure| figure.repetitions)
        .into();
    table.to_text(terminal)
}

/// A figure's ratio, as good or bad news.
pub(crate) fn ratio(figure: &&Figure) -> Cell {
    Cell::text(short(figure.ratio.median)).verdict(!figure.is_worse())
}

/// The least ratio and the greatest.
pub(crate) fn range(figure: &Figure) -> String {
    format!("{} to {}", short(figure.ratio.min), short(figure.ratio.max))
}

/// A value with its unit, in three digits.
pub(crate) fn amount(x: f64, unit: &str) -> String {
    format!("{} {unit}", short(x))
}
