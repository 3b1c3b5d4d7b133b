//! The command `dormouse doctor`.

use std::fmt::Write as _;

use dormouse_host::doctor::{
    ExaminationDepth, Finding, FindingState, HostDiagnosis, examine, examine_here,
};
use dormouse_view::Terminal;

use super::failure::Failure;
use super::print::show;
use super::terminal;

/// Checks whether live runs are possible on this host; the command's status is 0 if they are. Must be called while the
/// process has a single thread: with `here` this process becomes a worker.
pub(crate) fn run(as_json: bool, quick: bool, here: bool) -> Result<(), Failure> {
    let depth = if quick { ExaminationDepth::Look } else { ExaminationDepth::Prove };
    let diagnosis = if here { examine_here(depth) } else { examine(depth) };
    show(as_json, &diagnosis, || table(&diagnosis, terminal::stdout()))?;
    let Some(missing) = diagnosis.missing() else { return Ok(()) };
    Err(Failure::Broken(format!("no live runs here: {missing}; virtual runs work")))
}

/// A table of the findings, each with its fix below it, and the verdict.
fn table(diagnosis: &HostDiagnosis, terminal: Terminal) -> String {
    let width = diagnosis.findings.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { name, state, found, fix, took_us, .. } in &diagnosis.findings {
        let took = took_us.map(|us| format!(" ({} ms)", (us + 500) / 1000)).unwrap_or_default();
        let word = match state {
            FindingState::Found => terminal.verdict(true, "found  "),
            FindingState::Doubtful => terminal.verdict(false, "doubt  "),
            FindingState::Missing => terminal.verdict(false, "missing"),
        };
        let _ = writeln!(text, "  {word}  {name:<width$}  {found}{took}");
        if let Some(fix) = fix {
            let _ = writeln!(text, "  {:7}  {:<width$}  fix: {fix}", "", "");
        }
    }
    text += match (diagnosis.live, &diagnosis.proved_at) {
        (true, Some(_)) => "Live runs are possible: real tasks have shown it.",
        (true, None) => "Nothing that live runs need is missing; without --quick it is proved.",
        (false, _) => {
            "Live runs are not possible until what is missing is fixed; virtual runs work as they are."
        }
    };
    text
}
