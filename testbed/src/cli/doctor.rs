//! The command `dormouse doctor`.

use std::fmt::Write as _;

use dormouse_host::doctor::{Diagnosis, Finding, State, examine};
use dormouse_view::Terminal;

use super::failure::Failure;
use super::print::show;
use super::terminal;

/// Status 0 if live runs are possible.
pub(crate) fn run(as_json: bool) -> Result<(), Failure> {
    let diagnosis = examine();
    show(as_json, &diagnosis, || table(&diagnosis, terminal::stdout()))?;
    let Some(missing) = diagnosis.missing() else { return Ok(()) };
    Err(Failure::Broken(format!("no live runs here: {missing}; virtual runs work")))
}

/// A line for each finding, with its fix below it; and a verdict.
fn table(diagnosis: &Diagnosis, terminal: Terminal) -> String {
    let width = diagnosis.findings.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { name, state, found, fix } in &diagnosis.findings {
        let word = match state {
            State::Found => terminal.verdict(true, "found  "),
            State::Doubtful => terminal.verdict(false, "doubt  "),
            State::Missing => terminal.verdict(false, "missing"),
        };
        let _ = writeln!(text, "  {word}  {name:<width$}  {found}");
        if let Some(fix) = fix {
            let _ = writeln!(text, "  {:7}  {:<width$}  fix: {fix}", "", "");
        }
    }
    text += if diagnosis.live {
        "Live runs are possible."
    } else {
        "Live runs are not possible until what is missing is fixed; virtual runs work as they are."
    };
    text
}
