//! A host's calibration as a table.

use dormouse_host::calibration::{Calibration, Came, Spread};
use dormouse_view::{Cell, Column, Table};

const HEADINGS: [&str; 11] = [
    "load",
    "vCPUs",
    "speed-up",
    "tasks",
    "mean",
    "worst",
    "checkpoints",
    "faithful",
    "dump ms",
    "restore ms",
    "start ms",
];

/// A row for each speed-up at each load: what came of it.
pub(crate) fn table(calibration: &Calibration) -> Table {
    let none = || "-".to_owned();
    let spread = |spread: &Option<Spread>| {
        spread.map_or_else(none, |s| format!("{:.0} to {:.0}", s.median_ms, s.worst_ms))
    };
    // Figures of several digits each, so that they are words in a column of numbers.
    let mut table = Table::new(HEADINGS.map(Column::number));
    for cell in &calibration.cells {
        let came = match &cell.came {
            Came::Measured {
                tasks,
                mean_error,
                worst_error,
                checkpoints,
                checkpoints_due,
                faithful,
                dump,
                restore,
                start,
                ..
            } => [
                tasks.to_string(),
                format!("{:+.2} %", mean_error * 100.0),
                format!("{:+.1} %", worst_error * 100.0),
                format!("{checkpoints}/{checkpoints_due}"),
                if *faithful { "yes" } else { "no" }.to_owned(),
                spread(dump),
                spread(restore),
                spread(start),
            ],
            Came::Refused { .. } => std::array::from_fn(|column| match HEADINGS[column + 3] {
                "faithful" => "refused".to_owned(),
                _ => none(),
            }),
        };
        let asked = [cell.load.to_string(), cell.vcpus.to_string(), cell.speedup.to_string()];
        table.push(asked.into_iter().chain(came).map(Cell::text));
    }
    table
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
