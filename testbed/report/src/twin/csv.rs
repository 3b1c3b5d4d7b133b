//! The table `twin.csv`, with one line for each task or job.

use dormouse_analysis::twin::{TaskFate, TwinComparison, TwinTask};
use dormouse_view::{TableCell, TableColumn, TableOf, TypedTable};

/// The content of `twin.csv`: times in seconds, `difference` as a part of the twin's value.
#[must_use]
pub fn csv(twin: &TwinComparison) -> String {
    let table = TypedTable::with_rows(&twin.tasks)
        .column(TableColumn::count("task"), |task| task.number)
        .column(TableColumn::text("name"), |task| task.name.clone());
    let table = add_sides(table, TableColumn::text, "place", |side| side.place.clone());
    let table = add_sides(table, TableColumn::count, "attempts", |side| side.attempts);
    let table = add_sides(table, TableColumn::seconds, "started_s", |side| side.started);
    let table = add_sides(table, TableColumn::seconds, "finished_s", |side| side.finished);
    let table = add_sides(table, TableColumn::seconds, "took_s", TaskFate::took)
        .column(TableColumn::number("difference"), |task| task.difference)
        .column(TableColumn::text("standing"), |task| task.standing.word())
        .column(TableColumn::text("disturbed_by"), |task| task.standing.disturbed_by());
    TypedTable::from(table).to_csv()
}

/// Adds a column for each side to the table.
fn add_sides<'a, C: Into<TableCell>>(
    table: TableOf<&'a TwinTask>,
    column: fn(String) -> TableColumn,
    what: &str,
    cell: impl Fn(&TaskFate) -> C,
) -> TableOf<&'a TwinTask> {
    table
        .column(column(format!("live_{what}")), |task| cell(&task.sides.live))
        .column(column(format!("twin_{what}")), |task| cell(&task.sides.twin))
}
