//! `dormouse measure` moves each program to another VM in a second run, and reports what the move changes.
//!
//! It needs what the other live tests need (`whole_runs.rs`), and Python.

use std::fs;
use std::path::Path;

use dormouse_tests::{nothing_is_left_but, run_in, shared_live_turn, traces};
use serde_json::Value;

/// Three programs of some seconds: one needs nothing that CRIU loses, one does, and one writes the time, which differs
/// in each run.
const TASKS: &str = r#"name = "own-carried"
[workload]
kind = "bag"
deadline = "90m"
[[workload.task]]
name = "plain"
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep .5; done; echo done > said"]
outputs = ["said"]
memory = "150 MiB"
[[workload.task]]
name = "stopped"
command = ["/usr/bin/python3", "lost.py", "stop_told", "4"]
inputs = ["lost.py"]
outputs = ["said"]
memory = "150 MiB"
[[workload.task]]
name = "clock"
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep .5; done; date +%s%N > said"]
outputs = ["said"]
memory = "150 MiB"
[cloud]
boot = "0s"
[[cloud.type]]
name = "v"
vcpus = 1
memory = "300 MiB"
on-demand = 0.1
limits = { spot = 0, on-demand = 2 }
[scheduler]
name = "fifo"
fleet = [{ type = "v", market = "on-demand", count = 1 }]
[live]
speedup = 5
"#;

#[test]
fn measure_names_what_a_move_changes() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("mine.toml"), TASKS).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/own");
    fs::copy(fixtures.join("lost.py"), at.join("lost.py")).unwrap();
    let ended = run_in(at, &["measure", "mine.toml"]);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let of = |task: &str| {
        let lines = said.lines().map(str::trim);
        lines
            .filter(|line| line.starts_with(&format!("{task} ")))
            .skip(1)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let plain = of("plain");
    assert!(plain.contains("nothing that the kernel says of its processes has changed"), "{said}");
    assert!(plain.contains("left the same outputs, moved and undisturbed"), "{said}");
    let stopped = of("stopped");
    assert!(
        stopped.contains("waitpid(2) has told its parent, and will tell it once more"),
        "{said}"
    );
    assert!(of("clock").contains("left another said when it was moved"), "{said}");
    let measured: Value =
        serde_json::from_slice(&fs::read(at.join("measured.json")).unwrap()).unwrap();
    let carried = |n: usize| measured["measures"][n]["carried"].clone();
    assert_eq!(carried(0)["changes"], Value::Array(Vec::new()));
    assert_eq!(carried(1)["changes"].as_array().unwrap().len(), 1, "{measured}");
    assert_eq!(carried(2)["other-outputs"][0], "said");
    let ended = run_in(at, &["measure", "mine.toml", "--undisturbed"]);
    assert!(ended.status.success() && !String::from_utf8_lossy(&ended.stdout).contains("move"));
    nothing_is_left_but(&before);
}
