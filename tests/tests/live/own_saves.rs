//! Programs that save their work themselves, in live runs: at the notice that their VM is taken away, which one reads
//! with boto3's core at the metadata endpoint, or at times of their own; and one that saves nothing.
//!
//! They need what the other live tests need (`whole_runs.rs`), and `python3-botocore`, which `scripts/test` installs.

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{
    checks_and_replays, dormouse_says, events, nothing_is_left_but, shared_live_turn, summary,
    traces,
};
use serde_json::Value;

/// Two further tasks: one saves after each 250,000 rounds, and one saves nothing.
const OTHERS: &str = r#"
[[workload.task]]
name = "own"
command = ["/usr/bin/python3", "saver.py", "6000000", "250000"]
outputs = ["answer.txt"]
saves = "own"
runtime = { "c3.large" = "200s" }
memory = "100 MB"
directory = "16 MiB"
[[workload.task]]
name = "none"
command = ["/usr/bin/python3", "saver.py", "6000000"]
outputs = ["answer.txt"]
saves = "none"
runtime = { "c3.large" = "200s" }
memory = "100 MB"
directory = "16 MiB"
"#;

/// The output of the program without disturbance or metadata.
fn undisturbed(program: &Path) -> Vec<u8> {
    let alone = tempfile::tempdir().unwrap();
    let mut command = Command::new("/usr/bin/python3");
    command.arg(program).arg("6000000").current_dir(alone.path());
    let ended = command.env("AWS_EC2_METADATA_DISABLED", "true").output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    fs::read(alone.path().join("answer.txt")).unwrap()
}

/// The work with which each attempt at a task began, in ppm.
fn began_with(log: &[Value], task: u64) -> Vec<u64> {
    let starts = log.iter().filter(|event| event["report"] == "task-started");
    let starts = starts.filter(|event| event["task"] == task);
    starts.map(|event| event["done"].as_u64().unwrap()).collect()
}

#[test]
fn programs_go_on_with_what_they_saved_by_themselves() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/own");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("saver.py");
    fs::copy(examples.join("saver.py"), &program).unwrap();
    let file = folder.path().join("spot.toml");
    let example = fs::read_to_string(examples.join("spot.toml")).unwrap();
    fs::write(&file, example + OTHERS).unwrap();
    let out = folder.path().join("out");
    let words = ["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()];
    let _ = dormouse_says(&words);
    let of_run = summary(&out);
    assert_eq!(of_run["tasks"]["completed"], 3, "{of_run:#}");
    checks_and_replays(&out);
    let right = undisturbed(&program);
    let log = events(&out);
    let [notice, own, none] = [0, 1, 2].map(|task| {
        let left = out.join(format!("tasks/{task}"));
        assert_eq!(fs::read(left.join("outputs/answer.txt")).unwrap(), right, "task {task}");
        fs::read_to_string(left.join("stdout")).unwrap()
    });

    // It heard of its end in three ways, and went on with what it saved then.
    let heard = notice.lines().find_map(|line| line.strip_prefix("hears ")).unwrap();
    assert!(heard.starts_with(r#"{"action": "terminate", "time": "#), "{notice}");
    let (_, rounds) = heard.rsplit_once(" saves after ").unwrap();
    assert!(notice.contains("has the signal\n"), "{notice}");
    assert!(notice.contains(r#"has the file {"action":"terminate","time":"#), "{notice}");
    assert!(notice.contains(&format!("goes on after {rounds}\n")), "{notice}");
    let [0, later] = began_with(&log, 0)[..] else { panic!("{:?}", began_with(&log, 0)) };
    assert!((1..1_000_000).contains(&later), "{later}");

    assert!(own.starts_with("goes on after "), "{own}");
    assert_eq!(none, "");
    assert_eq!(began_with(&log, 2), [0, 0]);
    nothing_is_left_but(&before);

    // In virtual time the same bag is saved as it was here: each task in its own way.
    let again = folder.path().join("virtual");
    let _ = dormouse_says(&["run", file.to_str().unwrap(), "--out", again.to_str().unwrap()]);
    let twin = events(&again);
    let [0, kept] = began_with(&twin, 0)[..] else { panic!("{:?}", began_with(&twin, 0)) };
    // What others do on this host keeps a program back, and nothing has it ahead.
    assert!(later < kept + 20_000, "{kept} in virtual time, {later} here");
    assert_eq!(began_with(&twin, 2), [0, 0]);
    let by_the_clock = |log: &[Value], task: u64| {
        let taken = log.iter().filter(|event| {
            let is_taken = event["report"] == "checkpoint-taken" && event["task"] == task;
            is_taken || (event["report"] == "checkpoint-failed" && event["task"] == task)
        });
        taken.filter(|event| event["at"].as_u64().unwrap() < 80_000_000).count()
    };
    for log in [&log, &twin] {
        assert_eq!([0, 2].map(|task| by_the_clock(log, task)), [0, 0]);
    }
    // What it computed from the notice at 80 s on, until it had had 45 s to save, is in nothing that it saved.
    let stopped = twin.iter().find(|event| event["report"] == "task-stopped" && event["task"] == 0);
    assert_eq!(
        stopped.map(|it| (&it["at"], &it["kept"][1])),
        Some((&125_000_000.into(), &kept.into()))
    );
}
