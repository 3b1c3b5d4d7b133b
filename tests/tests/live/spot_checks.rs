//! Parts of tasks that another host computes again, once a run has ended.
//!
//! The live tests need what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::{
    checks_and_replays, dormouse, events, nothing_is_left_but, shared_live_turn, summary, text,
    traces,
};
use serde_json::Value;

/// Eight tasks on two VMs of a vCPU each: some five seconds of real time.
const CHECKED: &str = r#"name = "checked"
seed = 1
[cloud]
catalogue = "ec2-2020"
[scheduler]
name = "fifo"
fleet = [{ type = "c4.large", market = "on-demand", count = 2 }]
[workload]
kind = "bag"
deadline = "45m"
task = [{ name = "small", count = 8, memory = "10 MB", runtime = "120s" }]
[live]
speedup = 60
share = 0.1
"#;

/// Runs the experiment live on so many workers, with this variable in their environment.
fn run(out: &Path, workers: &str, variable: Option<(&str, &str)>) -> Output {
    let file = out.with_extension("toml");
    fs::write(&file, CHECKED).unwrap();
    let mut command = Command::new(dormouse());
    command.arg("run").arg(&file).args(["--live", "--speedup", "60", "--workers", workers]);
    command.arg("--out").arg(out);
    command.envs(variable);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    output
}

fn evidence(summary: &Value) -> String {
    let said = summary["fidelity"]["evidence"].as_array().unwrap();
    let said: Vec<&str> = said.iter().filter_map(Value::as_str).collect();
    said.join("|")
}

/// What came of the spot checks, in the log.
fn found(out: &Path) -> Vec<Value> {
    let all = events(out).into_iter();
    all.filter(|event| event["event"] == "spot-check").collect()
}

#[test]
fn an_honest_run_is_computed_again_in_part_and_all_is_as_reported() {
    let Some(_turn) = shared_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let out = folder.path().join("two");
    let said = text(&run(&out, "2", None));
    let checks = found(&out);
    assert!(!checks.is_empty() && checks.iter().all(|it| it["found"] == "equal"), "{checks:#?}");
    assert!(checks.iter().all(|it| it["of"] != it["by"]), "{checks:#?}");
    let summary = summary(&out);
    let words = format!("{} of 8 tasks were computed again in part on another host", checks.len());
    let evidence = evidence(&summary);
    let is_said = evidence.contains(&words) && evidence.contains("all as reported");
    assert!(is_said, "{evidence}");
    assert!(said.contains(&words), "{said}");
    // Of what the run decided and paid nothing hangs on them.
    checks_and_replays(&out);
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    let spent: u64 = checks.iter().map(|it| it["real_cpu_us"].as_u64().unwrap()).sum();
    println!("{} checks, {spent} us of CPU time: {evidence}", checks.len());
    // On one host there is nobody else; and one that does without a jail says so.
    let alone = folder.path().join("one");
    let said = text(&run(&alone, "1", Some(("DORMOUSE_JAIL", "none"))));
    assert!(said.contains("not checked by another host: there was none"), "{said}");
    assert!(said.contains("ran its tasks without a jail (--jail none)"), "{said}");
    assert_eq!(found(&alone).len(), 0);
    checks_and_replays(&alone);
    nothing_is_left_but(&before);
}

/// The attack: workers that keep time, and whose answers are right by what they come to, as that is known without the
/// work. Nobody knows the trail without it.
#[test]
fn workers_that_computed_nothing_and_kept_time_are_found_by_another_host() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("liars");
    let said = text(&run(&out, "2", Some(("DORMOUSE_FAULT", "forged-trails"))));
    let checks = found(&out);
    assert!(checks.iter().any(|it| it["found"] == "differs"), "{checks:#?}");
    let summary = summary(&out);
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    assert_eq!(summary["fidelity"]["faithful"], false, "{summary:#}");
    assert!(said.contains("NOT FAITHFUL") && said.contains("computed again: point"), "{said}");
    let check = Command::new(dormouse()).arg("check").arg(&out).output().unwrap();
    let said = text(&check);
    assert!(!check.status.success() && said.contains("computed again: point"), "{said}");
}
