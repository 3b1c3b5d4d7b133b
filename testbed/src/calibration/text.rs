//! A calibration for people.

use super::{Calibration, Came, Cell, Spread, Wanted};

/// A fraction as a percentage, without digits that say nothing.
pub(super) fn percent(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Mean and worst error, in words.
pub(super) fn errors(errors: Option<(f64, f64)>) -> String {
    match errors {
        Some((mean, worst)) => {
            format!("{:+.1} % at worst and {:+.2} % on average", worst * 100.0, mean * 100.0)
        }
        None => "it can't be run".to_owned(),
    }
}

/// The head of [`Cell::columns`].
pub(crate) const HEAD: [&str; 11] = [
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

impl Cell {
    /// What there is to say of it, by column.
    pub(crate) fn columns(&self) -> [String; 11] {
        let Self { speedup, load, vcpus, came, .. } = self;
        let [load, vcpus, speedup] = [load.to_string(), vcpus.to_string(), speedup.to_string()];
        let none = || "-".to_owned();
        let spread = |spread: &Option<Spread>| {
            spread.map_or_else(none, |s| format!("{:.0} to {:.0}", s.median_ms, s.worst_ms))
        };
        match came {
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
                load,
                vcpus,
                speedup,
                tasks.to_string(),
                format!("{:+.2} %", mean_error * 100.0),
                format!("{:+.1} %", worst_error * 100.0),
                format!("{checkpoints}/{checkpoints_due}"),
                if *faithful { "yes" } else { "no" }.to_owned(),
                spread(dump),
                spread(restore),
                spread(start),
            ],
            Came::Refused { .. } => {
                let refused = "refused".to_owned();
                [
                    load,
                    vcpus,
                    speedup,
                    none(),
                    none(),
                    none(),
                    none(),
                    refused,
                    none(),
                    none(),
                    none(),
                ]
            }
        }
    }
}

/// The table, and the highest speed-up for what is wanted at each load.
#[must_use]
pub fn table(calibration: &Calibration, wanted: &Wanted) -> String {
    let rows: Vec<_> = calibration.cells.iter().map(Cell::columns).collect();
    let width = |n: usize| {
        let cells = rows.iter().map(|row| row[n].chars().count());
        cells.max().unwrap_or(0).max(HEAD[n].chars().count())
    };
    let widths: Vec<_> = (0..HEAD.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<_> =
            cells.zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
        format!("  {}\n", cells.join("  "))
    };
    let mut text = line(&mut HEAD.iter().copied());
    for row in &rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text + &highest(calibration, wanted).join("\n")
}

/// A line for each load.
fn highest(calibration: &Calibration, wanted: &Wanted) -> Vec<String> {
    let (worst, mean) = (percent(wanted.worst), percent(wanted.mean));
    calibration
        .loads()
        .into_iter()
        .map(|load| match calibration.highest(load, wanted) {
            Some(speedup) => format!(
                "  at load {load} tasks err at most {worst} %, and {mean} % on average, up to \
                 speed-up {speedup}"
            ),
            None => format!(
                "  at load {load} tasks err more than {worst} %, or {mean} % on average, at every \
                 speed-up measured"
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::table::tests::{calibration, cell};

    #[test]
    fn a_person_sees_every_cell_and_what_to_take() {
        let why = "too fast".to_owned();
        let refused = Cell { came: Came::Refused { why }, ..cell(200.0, 1.0, 0.0) };
        let calibration = calibration(vec![
            cell(10.0, 1.0, -0.06),
            refused,
            cell(10.0, 0.5, 0.012),
            cell(30.0, 0.5, 0.05),
            cell(50.0, 0.5, 0.07),
        ]);
        let text = table(&calibration, &Wanted { worst: 0.05, mean: 0.005 });
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 1 + 5 + 2, "{text}");
        assert!(lines[1].contains("-0.30 %  -6.0 %"), "{text}");
        assert!(lines[2].contains("refused"), "{text}");
        assert!(
            lines[3].contains("+1.2 %        41/42       yes  30 to 30")
                && lines[3].contains("2 to 9")
        );
        assert!(lines[6].starts_with("at load 1 tasks err more than 5 %, or 0.5 %"), "{text}");
        assert!(lines[7].ends_with("up to speed-up 30"), "{text}");
    }
}
