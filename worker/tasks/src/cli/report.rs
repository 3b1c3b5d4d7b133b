//! A task's result as text for people.

use std::fmt::Write;

use crate::result::{Figure, TaskResult};

/// Formats a task's result for people: the verdict, the figures and the cost.
pub(super) fn text(result: &TaskResult) -> String {
    let mut out = result.kind.clone();
    if let Some(class) = &result.class {
        out.push_str(&format!(" class {class}"));
    }
    if let Some(id) = result.id {
        out.push_str(&format!(" task {id}"));
    }
    if let Some(bytes) = result.memory_bytes {
        out.push_str(&format!(" on {:.2} MB", bytes as f64 / 1e6));
    }
    let verdict = match result.verified {
        Some(true) => "VERIFIED",
        Some(false) => "NOT VERIFIED",
        None => "no reference for this input",
    };
    out.push_str(&format!(": {verdict}\n"));
    if !result.figures.is_empty() {
        append_table(&mut out, &result.figures);
    }
    let plural = if result.repetitions == 1 { "" } else { "s" };
    out.push_str(&format!(
        "  {} complete repetition{plural}, {:.3} s of CPU time",
        result.repetitions, result.cpu_seconds
    ));
    if let Some(wanted) = result.cpu_seconds_wanted {
        out.push_str(&format!(" of {wanted:.3} s wanted"));
    }
    if !result.rank_cpu_seconds.is_empty() {
        let ranks: Vec<String> =
            result.rank_cpu_seconds.iter().map(|seconds| format!("{seconds:.3}")).collect();
        out.push_str(&format!("; by rank: {} s", ranks.join(", ")));
    }
    out.push('\n');
    out
}

fn append_table(out: &mut String, figures: &[Figure]) {
    let name_width = figures.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "  {:name_width$}  {:>22}  {:>22}  {:>10}  {:>9}",
        "", "computed", "reference", "error", "tolerance"
    );
    for figure in figures {
        let reference = figure.reference.map_or_else(|| "-".to_owned(), number_text);
        let error = figure.relative_error().map_or_else(|| "-".to_owned(), |e| format!("{e:.2e}"));
        let tolerance = figure.reference.map_or_else(|| "-".to_owned(), |_| tolerance_text(figure));
        let mark = if figure.verified() == Some(false) { "  WRONG" } else { "" };
        let _ = writeln!(
            out,
            "  {:name_width$}  {:>22}  {reference:>22}  {error:>10}  {tolerance:>9}{mark}",
            figure.name,
            number_text(figure.computed),
        );
    }
}

fn tolerance_text(figure: &Figure) -> String {
    if figure.tolerance == 0.0 { "exact".to_owned() } else { format!("{:.0e}", figure.tolerance) }
}

/// Formats whole numbers as they are, all others with 14 digits.
fn number_text(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e16 { format!("{x:.0}") } else { format!("{x:.13e}") }
}
