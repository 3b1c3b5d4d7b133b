//! A host's calibration as a table.

use dormouse_host::calibration::{
    Calibration, CalibrationCell, CellFigures, CellOutcome, RepeatedDuration,
};
use dormouse_view::{TableColumn, TypedTable};

/// Table of a calibration, with one row for each speed-up at each load.
pub fn table(calibration: &Calibration) -> TypedTable {
    TypedTable::with_rows(&calibration.cells)
        .column(TableColumn::number("load"), |cell| cell.load.to_string())
        .column(TableColumn::number("vCPUs"), |cell| cell.vcpus.to_string())
        .column(TableColumn::number("speed-up"), |cell| cell.speedup.to_string())
        .column(TableColumn::number("tasks"), |cell| cell_figure(cell, |it| it.tasks.to_string()))
        .column(TableColumn::number("mean"), |cell| {
            cell_figure(cell, |it| format!("{:+.2} %", it.mean_error * 100.0))
        })
        .column(TableColumn::number("worst"), |cell| {
            cell_figure(cell, |it| format!("{:+.1} %", it.worst_error * 100.0))
        })
        .column(TableColumn::number("checkpoints"), |cell| {
            cell_figure(cell, |it| format!("{}/{}", it.checkpoints, it.checkpoints_due))
        })
        .column(TableColumn::number("faithful"), |cell| match &cell.came {
            CellOutcome::Measured(it) if it.faithful => "yes",
            CellOutcome::Measured(_) => "no",
            CellOutcome::Refused { .. } => "refused",
        })
        .column(TableColumn::number("dump ms"), |cell| {
            cell_figure(cell, |it| spread_in_words(it.dump))
        })
        .column(TableColumn::number("restore ms"), |cell| {
            cell_figure(cell, |it| spread_in_words(it.restore))
        })
        .column(TableColumn::number("start ms"), |cell| {
            cell_figure(cell, |it| spread_in_words(it.start))
        })
        .into()
}

const NONE: &str = "-";

fn cell_figure(cell: &CalibrationCell, words: impl Fn(&CellFigures) -> String) -> String {
    match &cell.came {
        CellOutcome::Measured(figures) => words(figures),
        CellOutcome::Refused { .. } => NONE.to_owned(),
    }
}

fn spread_in_words(of: Option<RepeatedDuration>) -> String {
    of.map_or(NONE.to_owned(), |of| format!("{:.0} to {:.0}", of.median_ms, of.worst_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_view::Terminal;

    #[test]
    fn a_person_sees_every_cell() {
        let text = r#"{ "format": 1, "made": "2026-11-22T03:34:53Z",
            "host": { "millicores": 2000, "processor": null, "kernel": "6.18.0", "cgroups": 2,
                "criu": null, "dormouse": "0.1.0" },
            "conditions": { "reserve": 250000, "task-s": [110.0, 140.0], "memory": 10000000,
                "checkpoint-s": 13.395 },
            "cells": [
                { "speedup": 10.0, "load": 1.0, "vcpus": 30, "made": "2026-11-22T03:34:53Z",
                  "came": "measured", "runs": 1, "tasks": 40, "mean-error": -0.003,
                  "worst-error": -0.06, "checkpoints": 41, "checkpoints-due": 42,
                  "faithful": true, "notes": [], "restore": null, "real-s": 9.5,
                  "start": { "n": 3, "median-ms": 2.0, "worst-ms": 9.0 },
                  "dump": { "n": 1, "median-ms": 30.0, "worst-ms": 30.0 } },
                { "speedup": 200.0, "load": 1.0, "vcpus": 30, "made": "2026-11-22T03:34:53Z",
                  "came": "refused", "why": "too fast" }] }"#;
        let calibration = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}"));
        let text = table(&calibration).to_text(Terminal::PLAIN);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        let measured = "1 30 10 40 -0.30 % -6.0 % 41/42 yes 30 to 30 - 2 to 9";
        assert_eq!(lines[1].join(" "), measured, "{text}");
        assert_eq!(lines[2].join(" "), "1 30 200 - - - - refused - - -", "{text}");
    }
}
