//! Three tenants of one provider in one file: a bag under Burst-HADS on spot VMs, parallel jobs under
//! MEASY, and customers whose on-demand requests take the spot VMs away.
//!
//! The live tests need what the other live tests need (`whole_runs.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{
    UnderWay, checks_and_replays, dormouse, dormouse_says, events, is_faithful,
    nothing_is_left_but, shared_live_turn, summary, text, timed_live_turn, traces, wait_for_event,
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// An experiment with two hosts that are full once the bag and the jobs have their VMs; then two requests come. It
/// takes 40 seconds of real time.
const TAKEN: &str = r#"name = "taken"
seed = 1
[cloud]
catalogue = "ec2-2020"
hosts = [{ vcpus = 8, memory = "64 GiB", count = 2 }]
placement = { scheduler = "opie" }
limits = { spot = 2, on-demand = 1 }
preemption-notice = "40s"
boot = "40s"
[[tenant]]
scheduler = { name = "burst-hads" }
checkpoint = { policy = "budget", overhead = 0.1, on = "spot" }
[tenant.workload]
kind = "bag"
deadline = "20m"
task = [{ name = "even", count = 20, memory = "10 MB", runtime = "200s" }]
[[tenant]]
scheduler = { name = "measy" }
[tenant.workload]
kind = "jobs"
processors = 4
job = [
  { submitted = "0s", processes = 2, runtime = "240s", estimate = "300s", usage = 0.5 },
  { submitted = "0s", processes = 2, runtime = "240s", estimate = "300s", usage = 0.6 },
  { submitted = "60s", processes = 4, runtime = "120s", estimate = "180s", usage = 0.5 },
  { submitted = "90s", processes = 1, runtime = "60s", estimate = "120s", usage = 1.0 },
]
[[tenant]]
[tenant.workload]
kind = "requests"
request = [
  { at = "150s", type = "c3.large", market = "on-demand", duration = "120s" },
  { at = "170s", type = "c3.large", market = "on-demand", duration = "120s" },
]
[live]
speedup = 25
mean-error = 0.015  # its four jobs take 2.4 to 9.6 s of real time, of which a process may be 40 ms off
"#;

/// The experiment at a higher speed-up: 26 s of real time, of which the shortest job takes 1.5 s.
fn faster(text: &str) -> String {
    text.replace(
        "speedup = 25\nmean-error = 0.015",
        "speedup = 40\nshare = 0.04\nmean-error = 0.025",
    )
}

/// Time of notice and boot together, in emulated seconds.
const WAIT_S: f64 = 80.0;

fn file_in(folder: &Path, text: &str) -> String {
    let file = folder.join("taken.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The rows of `taken.csv` by the names of their columns.
fn rows(out: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(out.join("taken.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines.map(|row| head.iter().cloned().zip(row).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// Checks that each of the two requests took a spot VM of the bag's, and that all work is done nevertheless.
fn both_were_served(out: &Path) {
    checks_and_replays(out);
    let summary = summary(out);
    assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
    assert_eq!(summary["counts"]["preemptions"], 2, "{summary:#}");
    for (tenant, all) in [(0, 20), (1, 4)] {
        assert_eq!(summary["tenants"][tenant]["tasks"]["completed"], all, "{summary:#}");
    }
    let rows = rows(out);
    let what = |row: &BTreeMap<String, String>| {
        ["told_s", "owner", "taker", "by_type", "end"].map(|column| row[column].clone())
    };
    let expected = |at: &str, request: &str| {
        [at, "bag", request, "c3.large", "notice used up"].map(str::to_owned)
    };
    let all: Vec<_> = rows.iter().map(what).collect();
    assert_eq!(all, [expected("150", "request0"), expected("170", "request1")]);
    for row in &rows {
        assert!((number(row, "gone_s") - number(row, "told_s") - 40.0).abs() < 0.5, "{row:?}");
        assert!((number(row, "by_waited_s") - WAIT_S).abs() < 0.5, "{row:?}");
        assert!(!row["tasks"].is_empty() && number(row, "stood_s") > 0.0, "{row:?}");
    }
    let taken = &summary["taken"];
    let [bag, jobs, customers] = &taken["tenants"].as_array().unwrap()[..] else {
        panic!("three tenants: {taken:#}")
    };
    assert_eq!(
        (&taken["vms"], &bag["vms_lost"], &customers["vms_taken"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!((&jobs["vms_lost"], &jobs["vms_taken"]), (&0.into(), &0.into()), "{taken:#}");
    // Its tasks went on elsewhere, from what was kept of them.
    assert!(
        bag["tasks"].as_u64() > Some(0) && bag["from_checkpoints"] == bag["tasks"],
        "{taken:#}"
    );
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("VMs that were taken") && report.contains("request1"));
    let dir = out.to_str().unwrap();
    assert!(
        dormouse_says(&["explain", dir, &format!("vm{}", rows[0]["vm"])]).contains("gets its room")
    );
}

#[test]
fn requests_take_the_bags_spot_vms_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (file_in(folder.path(), TAKEN), folder.path().join("out"));
    let _ = dormouse_says(&["run", &file, "--out", out.to_str().unwrap()]);
    both_were_served(&out);
    // With a host more there is room for all.
    let (file, out) = (
        file_in(folder.path(), &TAKEN.replace("count = 2 }", "count = 3 }")),
        folder.path().join("more"),
    );
    let _ = dormouse_says(&["run", &file, "--out", out.to_str().unwrap()]);
    assert_eq!((summary(&out)["taken"]["vms"].as_u64(), rows(&out).len()), (Some(0), 0));
    // And where nobody requests anything nothing is said of it.
    let out = folder.path().join("nobody");
    let _ = dormouse_says(&["run", "shared-small", "--out", out.to_str().unwrap()]);
    assert!(summary(&out)["taken"].is_null() && !out.join("taken.csv").exists());
}

#[test]
fn requests_take_real_vms_away_and_their_tasks_go_on_elsewhere() {
    let Some(_turn) = timed_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (file_in(folder.path(), &faster(TAKEN)), folder.path().join("out"));
    let dir = out.to_str().unwrap();
    let _ = dormouse_says(&["run", &file, "--live", "--quiet", "--out", dir]);
    both_were_served(&out);
    let summary = summary(&out);
    assert_eq!(summary["tenants"][0]["tasks"]["verified"], 20, "{summary:#}");
    assert_eq!(summary["tenants"][1]["tasks"]["verified"], 4, "{summary:#}");
    assert!(summary["counts"]["restores"].as_u64() > Some(0), "{summary:#}");
    is_faithful(&summary);
    nothing_is_left_but(&before);
}

#[test]
fn requests_are_not_asked_again_after_a_kill() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    // Two tasks are enough where it is not about them.
    let text = faster(&TAKEN.replace("count = 20", "count = 4"));
    let (file, out) = (file_in(folder.path(), &text), folder.path().join("out"));
    let run = UnderWay::live(&out, Path::new(&file), &[]);
    wait_for_event(&out, "the first request", |event| event["event"] == "requested");
    let _ = run.told(Signal::SIGKILL);
    let dir = out.to_str().unwrap();
    let _ = dormouse_says(&["resume", dir, "--quiet"]);
    checks_and_replays(&out);
    let log = events(&out);
    let asked: Vec<_> = log.iter().filter(|event| event["event"] == "requested").collect();
    let numbers: Vec<_> = asked.iter().map(|event| &event["request"]).collect();
    assert_eq!(numbers, [&Value::from(0), &Value::from(1)], "{asked:?}");
    assert_eq!(log.iter().filter(|event| event["event"] == "all-requested").count(), 1);
    assert_eq!(summary(&out)["tenants"][0]["tasks"]["verified"], 4);
    let in_memory = traces().into_iter().filter(|t| t.starts_with("/dev/shm"));
    nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());
}

#[test]
fn as_many_workers_as_hosts_or_a_word_about_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_in(folder.path(), &TAKEN.replace("speedup = 25", "speedup = 25\nworkers = 3"));
    let output = Command::new(dormouse()).args(["run", &file]).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in ["taken.toml:", "the provider has 2 hosts", "leave it out"] {
        assert!(said.contains(words), "no '{words}' in {said}");
    }
}
