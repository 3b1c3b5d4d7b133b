//! `twin.csv`: a task or job a line.

use dormouse_units::Time;

use super::{Side, Standing, TaskRow, Twin};
use crate::output::{quoted, secs_or_blank};

/// The columns of `twin.csv`; times in seconds, `difference` as a part of the twin's.
pub const COLUMNS: &str = "task,name,live_place,twin_place,live_attempts,twin_attempts,\
    live_started_s,twin_started_s,live_finished_s,twin_finished_s,live_took_s,twin_took_s,\
    difference,standing,disturbed_by";

impl Twin {
    /// The content of `twin.csv`.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = format!("{COLUMNS}\n");
        for row in &self.tasks {
            text += &line(row);
            text.push('\n');
        }
        text
    }
}

fn line(row: &TaskRow) -> String {
    let TaskRow { sides, .. } = row;
    let took = |of: &Side| secs_or_blank(of.took().map(|took| Time::ZERO + took));
    let (standing, by) = match &row.standing {
        Standing::Undisturbed => ("undisturbed", ""),
        Standing::Background => ("background", ""),
        Standing::Disturbed(by) => ("disturbed", by.as_str()),
    };
    [
        row.number.to_string(),
        quoted(&row.name),
        quoted(&sides.live.place),
        quoted(&sides.twin.place),
        sides.live.attempts.to_string(),
        sides.twin.attempts.to_string(),
        secs_or_blank(sides.live.started),
        secs_or_blank(sides.twin.started),
        secs_or_blank(sides.live.finished),
        secs_or_blank(sides.twin.finished),
        took(&sides.live),
        took(&sides.twin),
        row.difference.map(|x| x.to_string()).unwrap_or_default(),
        standing.to_owned(),
        quoted(by),
    ]
    .join(",")
}
