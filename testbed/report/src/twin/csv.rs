//! The table `twin.csv`, with one line for each task or job.

use dormouse_analysis::twin::{TaskFate, TwinComparison, TwinTask};
use dormouse_view::{Cell, Column, Table, TableOf};

/// The content of `twin.csv`: times in seconds, `difference` as a part of the twin's value.
#[must_use]
pub fn csv(twin: &TwinComparison) -> String {
    let table = Table::with_rows(&twin.tasks)
        .column(Column::count("task"), |task| task.number)
        .column(Column::text("name"), |task| task.name.clone());
    let table = sides(table, Column::text, "place", |side| side.place.clone());
    let table = sides(table, Column::count, "attempts", |side| side.attempts);
    let table = sides(table, Column::seconds, "started_s", |side| side.started);
    let table = sides(table, Column::seconds, "finished_s", |side| side.finished);
    let table = sides(table, Column::seconds, "took_s", TaskFate::took)
        .column(Column::number("difference"), |task| task.difference)
        .column(Column::text("standing"), |task| task.standing.word())
        .column(Column::text("disturbed_by"), |task| task.standing.disturbed_by());
    Table::from(table).to_csv()
}

/// Adds a column for each side to the table.
fn sides<'a, C: Into<Cell>>(
    table: TableOf<&'a TwinTask>,
    column: fn(String) -> Column,
    what: &str,
    cell: impl Fn(&TaskFate) -> C,
) -> TableOf<&'a TwinTask> {
    table
        .column(column(format!("live_{what}")), |task| cell(&task.sides.live))
        .column(column(format!("twin_{what}")), |task| cell(&task.sides.twin))
}
