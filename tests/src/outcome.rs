//! What the program says, and what a run leaves in its folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::{dormouse, wait_for};

/// All that a command has said.
#[must_use]
pub fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What `dormouse` says to these arguments.
///
/// # Panics
///
/// It fails.
#[must_use]
pub fn dormouse_says(args: &[&str]) -> String {
    let output = Command::new(dormouse()).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{args:?}: {error}"));
    assert!(output.status.success(), "{args:?}: {}", text(&output));
    text(&output)
}

/// The summary of the run in `out`.
///
/// # Panics
///
/// There is none.
#[must_use]
pub fn summary(out: &Path) -> Value {
    let path = out.join("summary.json");
    let read = fs::read_to_string(&path).map_err(|error| error.to_string());
    read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Nothing of its own makes the run of this summary unfaithful: tests share their host with whatever else
/// runs there.
///
/// # Panics
///
/// Something does.
pub fn is_faithful(summary: &Value) {
    let fidelity = &summary["fidelity"];
    let of_others = |note: &Value| note.to_string().contains("other processes");
    let notes = fidelity["notes"].as_array();
    let all_of_others = notes.is_some_and(|notes| !notes.is_empty() && notes.iter().all(of_others));
    assert!(fidelity["faithful"] == true || all_of_others, "{fidelity:#}");
}

/// The lines of the log of the run in `out`. The last one may be half-written, and is left out
/// then; so is all of a log that is not there yet.
#[must_use]
pub fn events(out: &Path) -> Vec<Value> {
    let log = fs::read_to_string(out.join("events.jsonl")).unwrap_or_default();
    log.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits until the log of the run in `out` holds a line that `wanted` finds.
///
/// # Panics
///
/// It does not within a minute.
pub fn wait_for_event(out: &Path, what: &str, wanted: impl Fn(&Value) -> bool) {
    wait_for(what, Duration::from_secs(60), || {
        let log = events(out);
        if log.iter().any(&wanted) { Ok(()) } else { Err(format!("it ends with {:?}", log.last())) }
    });
}

/// Waits until the run in `out` was told of `report` after so many lines of its log.
///
/// # Panics
///
/// It was not within a minute.
pub fn wait_for_report(out: &Path, report: &str, after: usize) {
    wait_for_event(out, report, |e| {
        e["report"] == report && e["seq"].as_u64().is_some_and(|seq| seq >= after as u64)
    });
}

/// What a whole run of any kind must stand: no rule is broken in it, and the same decisions come out
/// of its log.
///
/// # Panics
///
/// It does not.
pub fn checks_and_replays(out: &Path) {
    let dir = out.display().to_string();
    let _ = dormouse_says(&["check", &dir]);
    let replayed = dormouse_says(&["replay", &dir]);
    let summary = summary(out);
    let digest = summary["decisions_sha256"].as_str();
    assert!(digest.is_some_and(|digest| replayed.contains(digest)), "{digest:?}: {replayed}");
}
