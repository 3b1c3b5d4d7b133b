//! Spot checks: parts of tasks that another host computes again after the end of a run.
//!
//! The live tests need what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::{
    JOBS, checks_and_replays, dormouse, events, jobs_experiment, nothing_is_left_but,
    shared_live_turn, summary, text, traces,
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

/// The task setting for kernels of the kind CG, whose repetitions take some tens of milliseconds each.
const KERNEL: &str = "tasks = { kind = \"cg\", class = \"S\" }\n";

/// An experiment of six user programs on two VMs of a vCPU each; each takes a second of CPU time, and all may be run
/// again.
fn own(script: &str, deterministic: bool) -> String {
    format!(
        r#"name = "checked-own"
seed = 1
[cloud]
catalogue = "ec2-2020"
[scheduler]
name = "fifo"
fleet = [{{ type = "c4.large", market = "on-demand", count = 2 }}]
[workload]
kind = "bag"
deadline = "45m"
[[workload.task]]
name = "sum"
count = 6
command = ["/bin/sh", "-c", {script:?}]
outputs = ["sum"]
verify = ["/bin/grep", "-q", "[0-9]", "{{output}}"]
deterministic = {deterministic}
runtime = "30s"
memory = "64 MiB"
directory = "1 MiB"
saves = "none"
[live]
speedup = 30
share = 0.1
spot-checks = 1.0
"#
    )
}

/// Runs an experiment live on `workers` workers, with this variable in their environment.
fn run_text(text_of: &str, out: &Path, workers: &str, variable: Option<(&str, &str)>) -> Output {
    let file = out.with_extension("toml");
    fs::write(&file, text_of).unwrap();
    let mut command = Command::new(dormouse());
    command.arg("run").arg(&file).args(["--live", "--workers", workers]);
    command.arg("--out").arg(out);
    command.envs(variable);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    output
}

/// Runs [`CHECKED`] live.
fn run(out: &Path, workers: &str, variable: Option<(&str, &str)>) -> Output {
    run_text(CHECKED, out, workers, variable)
}

/// CPU time of a run's spot checks, in percent of that of its attempts.
fn part_of_cpu_time(out: &Path) -> f64 {
    let spent = |of: &str, kind: &str| -> f64 {
        let all = events(out).into_iter().filter(|event| event[of] == kind);
        all.filter_map(|event| event["real_cpu_us"].as_f64()).sum()
    };
    spent("event", "spot-check") / spent("report", "task-finished") * 100.0
}

fn evidence(summary: &Value) -> String {
    let said = summary["fidelity"]["evidence"].as_array().unwrap();
    let said: Vec<&str> = said.iter().filter_map(Value::as_str).collect();
    said.join("|")
}

/// The results of the spot checks, from the log.
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

/// The attack, of kernels: the time is kept, the published figures are right, and the repetitions were not computed.
#[test]
fn kernels_are_computed_again_and_workers_that_did_not_compute_them_are_found() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let honest = folder.path().join("honest");
    let text_of = format!("{CHECKED}{KERNEL}");
    run_text(&text_of, &honest, "2", None);
    let checks = found(&honest);
    assert!(!checks.is_empty() && checks.iter().all(|it| it["found"] == "equal"), "{checks:#?}");
    assert_eq!(summary(&honest)["tasks"]["verified"], 8);
    checks_and_replays(&honest);
    println!("{} checks, {:.2} % of the CPU time", checks.len(), part_of_cpu_time(&honest));
    let out = folder.path().join("liars");
    let said = text(&run_text(&text_of, &out, "2", Some(("DORMOUSE_FAULT", "forged-trails"))));
    let checks = found(&out);
    assert!(checks.iter().any(|it| it["found"] == "differs"), "{checks:#?}");
    assert_eq!(summary(&out)["tasks"]["verified"], 8, "they are right by themselves");
    assert!(said.contains("NOT FAITHFUL") && said.contains("computed again: point"), "{said}");
}

/// The attack, of parallel jobs: their results are known without the work, and were sent without it. The machine of the jobs is on
/// one host, and the other does nothing but check.
#[test]
fn parallel_jobs_are_computed_again_in_part_and_workers_that_waited_are_found() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text_of = jobs_experiment("checked-jobs", "easy", &JOBS);
    let honest = folder.path().join("honest");
    run_text(&text_of, &honest, "2", None);
    let checks = found(&honest);
    assert!(!checks.is_empty() && checks.iter().all(|it| it["found"] == "equal"), "{checks:#?}");
    checks_and_replays(&honest);
    println!("{} checks, {:.2} % of the CPU time", checks.len(), part_of_cpu_time(&honest));
    let out = folder.path().join("liars");
    let said = text(&run_text(&text_of, &out, "2", Some(("DORMOUSE_FAULT", "forged-trails"))));
    let checks = found(&out);
    assert!(checks.iter().any(|it| it["found"] == "differs"), "{checks:#?}");
    assert!(said.contains("NOT FAITHFUL") && said.contains("computed again: place"), "{said}");
}

/// A program of the user's that is declared deterministic is run again in full. One that is not deterministic is found
/// and reported, as an output would be that no program made.
#[test]
fn a_deterministic_program_is_run_again_in_full_and_one_that_is_not_is_found() {
    let Some(_turn) = shared_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let honest = folder.path().join("honest");
    let sum = "n=0; while [ $n -lt 60000 ]; do n=$((n+1)); done; echo $n > sum";
    let said = text(&run_text(&own(sum, true), &honest, "2", None));
    let checks = found(&honest);
    assert!(!checks.is_empty(), "{said}");
    assert!(checks.iter().all(|it| it["found"] == "equal" && it["whole"] == true), "{checks:#?}");
    let words = format!("{} of 6 tasks were computed again in full on another host", checks.len());
    assert!(evidence(&summary(&honest)).contains(&words), "{}", evidence(&summary(&honest)));
    checks_and_replays(&honest);
    println!("{} checks, {:.2} % of the CPU time", checks.len(), part_of_cpu_time(&honest));
    let random = format!("{sum}; od -An -N8 -tu8 /dev/urandom > sum");
    let out = folder.path().join("random");
    let said = text(&run_text(&own(&random, true), &out, "2", None));
    let checks = found(&out);
    assert!(checks.iter().any(|it| it["found"] == "differs"), "{checks:#?}");
    assert!(said.contains("when its program was run again"), "{said}");
    // What does not say so is not run again.
    let silent = folder.path().join("silent");
    let said = text(&run_text(&own(&random, false), &silent, "2", None));
    assert_eq!(found(&silent).len(), 0);
    assert!(said.contains("not checked by another host: no answer could be"), "{said}");
    nothing_is_left_but(&before);
}
