//! The output of the program, and the files that a run leaves in its folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::{dormouse, wait_for};

/// All output of a command, standard output and standard error.
#[must_use]
pub fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The output of `dormouse` with these arguments.
///
/// # Panics
///
/// The command fails.
#[must_use]
pub fn dormouse_says(args: &[&str]) -> String {
    let output = Command::new(dormouse()).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{args:?}: {error}"));
    assert!(output.status.success(), "{args:?}: {}", text(&output));
    text(&output)
}

/// The content of `summary.json` of the run in `out`.
///
/// # Panics
///
/// The run has no summary.
#[must_use]
pub fn summary(out: &Path) -> Value {
    let path = out.join("summary.json");
    let read = fs::read_to_string(&path).map_err(|error| error.to_string());
    read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Checks by its summary that a run is faithful, or unfaithful only for load of the host by others, as tests share
/// their host.
///
/// # Panics
///
/// The run is unfaithful for a reason of its own.
pub fn is_faithful(summary: &Value) {
    let fidelity = &summary["fidelity"];
    let of_others = |note: &Value| note.to_string().contains("other processes");
    let notes = fidelity["notes"].as_array();
    let all_of_others = notes.is_some_and(|notes| !notes.is_empty() && notes.iter().all(of_others));
    assert!(fidelity["faithful"] == true || all_of_others, "{fidelity:#}");
}

/// The lines of the log of the run in `out`. A last line that is half-written is left out; a log that does not exist
/// yet has no lines.
#[must_use]
pub fn events(out: &Path) -> Vec<Value> {
    let log = fs::read_to_string(out.join("events.jsonl")).unwrap_or_default();
    log.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits until the log of the run in `out` holds a line that `wanted` finds.
///
/// # Panics
///
/// The log has no such line within a minute.
pub fn wait_for_event(out: &Path, what: &str, wanted: impl Fn(&Value) -> bool) {
    wait_for(what, Duration::from_secs(60), || {
        let log = events(out);
        if log.iter().any(&wanted) { Ok(()) } else { Err(format!("it ends with {:?}", log.last())) }
    });
}

/// Waits until the log of the run in `out` has a report of the kind `report` after its first `after` lines.
///
/// # Panics
///
/// The log has no such report within a minute.
pub fn wait_for_report(out: &Path, report: &str, after: usize) {
    wait_for_event(out, report, |e| {
        e["report"] == report && e["seq"].as_u64().is_some_and(|seq| seq >= after as u64)
    });
}

/// Checks a whole run of any kind: it breaks no rule, and a replay of its log makes the same decisions.
///
/// # Panics
///
/// The run breaks a rule, or its replay differs.
pub fn checks_and_replays(out: &Path) {
    let dir = out.display().to_string();
    let _ = dormouse_says(&["check", &dir]);
    let replayed = dormouse_says(&["replay", &dir]);
    let summary = summary(out);
    let digest = summary["decisions_sha256"].as_str();
    assert!(digest.is_some_and(|digest| replayed.contains(digest)), "{digest:?}: {replayed}");
}
