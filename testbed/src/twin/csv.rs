//! `twin.csv`: a task or job a line.

use dormouse_tell::twin::{Side, TaskRow, Twin};
use dormouse_units::Time;
use dormouse_view::{Cell, Column, Table};

/// The content of `twin.csv`; times in seconds, `difference` as a part of the twin's.
#[must_use]
pub fn csv(twin: &Twin) -> String {
    let sides = |what: &str| ["live", "twin"].map(|side| format!("{side}_{what}"));
    let times = ["started_s", "finished_s", "took_s"];
    let columns = [Column::count("task"), Column::text("name")]
        .into_iter()
        .chain(sides("place").map(Column::text))
        .chain(sides("attempts").map(Column::count))
        .chain(times.into_iter().flat_map(|what| sides(what).map(Column::seconds)))
        .chain([Column::number("difference")])
        .chain(["standing", "disturbed_by"].map(Column::text));
    let mut table = Table::new(columns);
    table.extend(twin.tasks.iter().map(row));
    table.to_csv()
}

fn row(of: &TaskRow) -> Vec<Cell> {
    let sides = [&of.sides.live, &of.sides.twin];
    let time = |at: Option<Time>| Cell::from(at);
    let (standing, by) = (of.standing.word(), of.standing.disturbed_by().unwrap_or_default());
    [Cell::count(of.number), Cell::text(&*of.name)]
        .into_iter()
        .chain(sides.map(|side| Cell::text(&*side.place)))
        .chain(sides.map(|side| Cell::count(side.attempts)))
        .chain(sides.map(|side| time(side.started)))
        .chain(sides.map(|side| time(side.finished)))
        .chain(sides.map(|side: &Side| Cell::from(side.took())))
        .chain([Cell::maybe(of.difference, Cell::number), Cell::text(standing), Cell::text(by)])
        .collect()
}
