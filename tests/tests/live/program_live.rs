//! A live run under a scheduler that is a program of its own: it is as faithful as any other, and can be resumed after
//! the program has failed and after the run was killed.
//!
//! It needs what the other live tests need (`whole_runs.rs`), and Python 3.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_tests::{
    UnderWay, checks_and_replays, dormouse_says, events, is_faithful, nothing_is_left_but,
    shared_live_turn, summary, text, timed_live_turn, traces, wait_for,
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Tasks of 300 s on spot VMs of one type, which hibernate for good at 250 s: 24 seconds of
/// real time.
const HIBERNATES: &str = r#"name = "hibernates"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[[interruption]]
model = "schedule"
acts = [{ at = "250s", action = "hibernate", type = "c3.large" }]
[workload]
kind = "bag"
deadline = "20m"
[[workload.task]]
name = "small"
count = 8
memory = "10 MB"
runtime = { "c3.large" = "300s", "c3.xlarge" = "300s" }
[checkpoint]
policy = "budget"
overhead = 0.1
[scheduler]
name = "program"
command = ["./mine.py"]
[live]
speedup = 30
share = 0.05
"#;

/// Writes the experiment and these files of its scheduler to a folder; the first file is the program that is run.
fn experiment(folder: &Path, programs: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, file) in programs {
        fs::copy(root.join(file), folder.join(name)).unwrap();
    }
    let file = folder.join("experiment.toml");
    fs::write(&file, HIBERNATES).unwrap();
    file
}

#[test]
fn a_live_run_under_a_program_decides_as_in_virtual_time_and_is_faithful() {
    let Some(_turn) = timed_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path(), &[("mine.py", "examples/schedulers/plain.py")]);
    let (live, virtually) = (folder.path().join("live"), folder.path().join("virtual"));
    let [file, live_dir, dir] = [&file, &live, &virtually].map(|path| path.to_str().unwrap());
    let _ = dormouse_says(&["run", file, "--out", dir]);
    let _ = dormouse_says(&["run", file, "--live", "--out", live_dir]);
    let (of_live, of_virtual) = (summary(&live), summary(&virtually));
    assert_eq!(of_live["tasks"]["verified"], 8, "{of_live:#}");
    assert_eq!(of_live["counts"]["rejected"], 0, "{of_live:#}");
    assert!(of_live["counts"]["restores"].as_u64().unwrap() > 0, "{of_live:#}");
    is_faithful(&of_live);
    let vms = |summary: &Value| summary["vms"].as_array().unwrap().len();
    assert_eq!(vms(&of_live), vms(&of_virtual));
    checks_and_replays(&live);
    let twin: Value = serde_json::from_str(&dormouse_says(&["twin", live_dir, "--json"])).unwrap();
    let makespan = |side: &str| twin["makespan_s"][side].as_f64().unwrap();
    let apart = (makespan("live") - makespan("twin")).abs() / makespan("twin");
    assert!(apart < 0.01, "its answers are followed in the twin: {twin}");
    nothing_is_left_but(&before);
}

#[test]
fn a_live_run_goes_on_after_its_program_failed_and_after_it_was_killed() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        ("mine.py", "tests/fixtures/breaks-half-way.py"),
        ("plain.py", "examples/schedulers/plain.py"),
    ];
    let file = experiment(folder.path(), &programs);
    let (out, broken) = (folder.path().join("out"), folder.path().join("broken"));
    fs::write(&broken, "").unwrap();

    let failed = UnderWay::live(&out, &file, &[]).ended();
    let error = text(&failed);
    assert_eq!(failed.status.code(), Some(1), "{error}");
    for words in
        ["mine.py ended with status 3 before its answer at", "its last words: `it is broken`"]
    {
        assert!(error.contains(words), "{error}");
    }
    assert!(error.contains("/out` continues the run"), "{error}");
    let first = events(&out);

    // As long as it is broken, it can't go on, and nothing is lost.
    let still = UnderWay::resumed(&out).ended();
    assert_eq!(still.status.code(), Some(1), "{}", text(&still));
    assert_eq!(events(&out)[..first.len()], first);

    fs::remove_file(&broken).unwrap();
    let resumed = UnderWay::resumed(&out);
    let is_end = |step: &Value| step["report"] == "task-finished";
    wait_for("a task that ends", Duration::from_secs(60), || {
        let log = events(&out);
        let ends = log.iter().skip(first.len()).filter(|step| is_end(step)).count();
        if ends > 0 { Ok(()) } else { Err(format!("{} lines", log.len())) }
    });
    let killed = resumed.told(Signal::SIGKILL);
    assert!(!killed.status.success());
    // Only a folder in memory waits for the next start, which removes it.
    let in_memory = traces().into_iter().filter(|t| t.starts_with("/dev/shm"));
    nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());

    let done = UnderWay::resumed(&out).ended();
    assert!(done.status.success(), "{}", text(&done));
    let summary = summary(&out);
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}
