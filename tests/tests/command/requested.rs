//! VMs that customers request from a provider, through the command line: a run's output and files, and what can be
//! asked about it later.

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;
use serde_json::Value;

/// An experiment with two hosts full of spot VMs, and three on-demand VMs that each need a whole host.
const FULL: &str = r#"name = "full"
[cloud]
boot = "60s"
preemption-notice = "30s"
tariff = "hour"
placement = { scheduler = "opie" }
hosts = [{ vcpus = 4, memory = "16 GB", disk = "100 GB", count = 2 }]
type = [
  { name = "small", vcpus = 1, memory = "2 GB", disk = "20 GB", on-demand = 0.05, spot = 0.01 },
  { name = "large", vcpus = 4, memory = "8 GB", disk = "80 GB", on-demand = 0.2, spot = 0.04 },
]
[workload]
kind = "requests"
request = [
  { at = "0s", type = "small", market = "spot", duration = "2h", count = 8 },
  { at = "30m", type = "large", market = "on-demand", duration = "1h" },
  { at = "31m", type = "large", market = "on-demand", duration = "1h" },
  { at = "32m", type = "large", market = "on-demand", duration = "1h" },
]
"#;

fn says(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(dormouse()).args(args).current_dir(folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&says(folder, args)).unwrap()
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("full.toml"), text).unwrap();
    folder
}

#[test]
fn a_run_says_and_leaves_what_became_of_requests() {
    let folder = folder_with(FULL);
    let here = folder.path();
    let said = says(here, &["run", "full.toml", "--out", "out"]);
    for line in [
        "3 requests: 2 completed, 1 failed, 33.3 % of them",
        "8 requests: 0 completed, 0 failed, 8 terminated",
        "2 normal requests for victims: 30.0 s on average",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let text = |name: &str| fs::read_to_string(here.join("out").join(name)).unwrap();
    let summary: Value = serde_json::from_str(&text("summary.json")).unwrap();
    let at = |path: &str| summary.pointer(path).unwrap_or_else(|| panic!("{path}")).clone();
    // Ready at 31:30 and 32:30, and there for an hour.
    assert_eq!(at("/makespan_s"), 5550.0);
    assert_eq!((at("/cost_usd"), at("/scheduler")), (0.4.into(), "opie".into()));
    assert_eq!((at("/counts/vms_launched"), at("/counts/preemptions")), (10.into(), 8.into()));
    assert_eq!((at("/vms"), at("/tasks/total")), (Value::Array(Vec::new()), 0.into()));
    assert_eq!(at("/requests/normal/failed"), 1);
    assert_eq!(at("/requests/preemptible/terminated"), 8);
    assert_eq!(at("/requests/terminations/requests"), 8);
    assert_eq!(at("/requests/revenue_lost_usd/failed"), 0.2);
    assert_eq!(at("/requests/figures/failed_normal"), 1.0);
    assert_eq!(at("/requests/figures/victim_wait_max_s"), 30.0);
    // Four VMs ran for 29.5 minutes, four for 30.5.
    let lost = at("/requests/figures/work_lost_vcpu_h").as_f64().unwrap();
    assert!((lost - 4.0).abs() < 1e-9, "{lost}");
    // From 1 minute to 32 all vCPUs are in use but for those of VMs that boot.
    let rows = text("requests.csv");
    assert_eq!(rows.lines().count(), 12, "{rows}");
    assert_eq!(rows.lines().filter(|row| row.contains(",displaced,")).count(), 8, "{rows}");
    assert!(rows.contains("\n10,1920,large,on-demand,3600,,,1920,refused,,,0.000000000"), "{rows}");
    let report = text("report.html");
    for what in ["Over time", "What became of the requests", "What did it earn?", "<svg"] {
        assert!(report.contains(what), "{what}");
    }
    // The answers have the numbers of the rows above.
    for what in ["<b>1</b> normal request failed", "<b>8</b> preemptible VMs terminated"] {
        assert!(report.contains(what), "{what}");
    }
    let again = json(here, &["run", "full.toml", "--out", "again", "--json"]);
    assert_eq!(again["requests"], summary["requests"]);
    assert_eq!(again["decisions_sha256"], summary["decisions_sha256"]);
}

/// A spot VM that hibernates for an on-demand VM, from 30 minutes until 91: its disk of 10 GiB at $7.20 costs 10 cents an hour.
#[test]
fn the_disk_of_a_hibernated_vm_is_a_part_of_the_revenue() {
    let text = r#"name = "full"
[cloud]
boot = "60s"
hibernation = "0s"
placement = "preempting"
preemption = "hibernate"
hosts = [{ vcpus = 4, memory = "16 GiB", disk = "100 GB" }]
stopped-disk = { size = "2 GiB", price = 7.2 }
type = [{ name = "large", vcpus = 4, memory = "8 GiB", on-demand = 0.2, spot = 0.04 }]
[workload]
kind = "requests"
request = [
  { at = "0s", type = "large", market = "spot", duration = "4h" },
  { at = "30m", type = "large", market = "on-demand", duration = "1h" },
]
"#;
    let folder = folder_with(text);
    let here = folder.path();
    let with = json(here, &["run", "full.toml", "--out", "out", "--json"]);
    let at = |path: &str| {
        with.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{with:#}"))
    };
    let disk = 0.1 * 61.0 / 60.0;
    assert!((at("/requests/stopped_disk_usd") - disk).abs() < 1e-9, "{with:#}");
    assert!((at("/cost_usd") - (0.2 + 4.0 * 0.04 + disk)).abs() < 1e-8, "{with:#}");
    let told = says(here, &["explain", "out", "request0"]);
    assert!(told.contains("with $0.1017 for its disk while it was hibernated"), "{told}");
    assert!(says(here, &["check", "out"]).contains("no rule broken"));
    let page = fs::read_to_string(here.join("out/report.html")).unwrap();
    assert!(page.contains("Of the revenue, $0.1017 is for disks of hibernated VMs."));
    fs::write(here.join("full.toml"), text.replace("stopped-disk", "#")).unwrap();
    let without = json(here, &["run", "full.toml", "--out", "plain", "--json"]);
    assert!(without["requests"].get("stopped_disk_usd").is_none(), "{without:#}");
    assert_eq!(without["decisions_sha256"], with["decisions_sha256"]);
}

#[test]
fn a_run_can_be_asked_about() {
    let folder = folder_with(FULL);
    let here = folder.path();
    says(here, &["run", "full.toml", "-q", "--out", "out"]);
    let checked = says(here, &["check", "out"]);
    assert!(checked.contains("no rule broken") && checked.contains("of 11 requests"), "{checked}");
    assert_eq!(json(here, &["check", "out", "--json"])["requests"], 11);
    assert!(says(here, &["replay", "out"]).contains("all as recorded"));
    let told = says(here, &["explain", "out", "request8"]);
    assert!(told.contains("leaves for it: 1740.0 s of a charged hour"), "{told}");
    assert_eq!(told, says(here, &["explain", "out", "vm8"]));
    let args = ["explain", "out", "request99"];
    let output = Command::new(dormouse()).args(args).current_dir(here).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("ask for a request such as request0"), "{error}");
    for format in ["perfetto", "svg", "parquet"] {
        says(here, &["export", "out", "--as", format, "--out", format]);
    }
    let table = fs::read(here.join("parquet/requests.parquet")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
}

/// The scheduler that places requested VMs is named like any other, even if the file has a rule of that name.
#[test]
fn the_scheduler_of_requests_is_who_places_them() {
    for text in [FULL.to_owned(), FULL.replace(r#"{ scheduler = "opie" }"#, "\"spread\"")] {
        let folder = folder_with(&text);
        let here = folder.path();
        let filter =
            json(here, &["run", "full.toml", "--scheduler", "filter", "--out", "f", "--json"]);
        assert_eq!(filter["scheduler"], "filter");
        assert_eq!(filter["requests"]["normal"]["failed"], 3);
        assert_eq!(filter["requests"]["preemptible"]["completed"], 8);
        says(here, &["check", "f"]);
        let retry =
            json(here, &["run", "full.toml", "--scheduler", "retry", "--out", "r", "--json"]);
        assert_eq!(
            (&retry["scheduler"], &retry["requests"]["normal"]["failed"]),
            (&"retry".into(), &1.into())
        );
        let compared = says(
            here,
            &[
                "compare",
                "--schedulers",
                "opie,filter",
                "--on",
                "full.toml",
                "--seeds",
                "2",
                "--out",
                "c",
            ],
        );
        assert!(compared.contains("normal requests failed"), "{compared}");
        let table = fs::read_to_string(here.join("c/table.csv")).unwrap();
        let row = |metric: &str, scheduler: &str| {
            let row = table
                .lines()
                .find(|row| row.starts_with(&format!("full.toml/{scheduler},{metric},")));
            row.unwrap_or_else(|| panic!("{metric} of {scheduler}: {table}")).to_owned()
        };
        assert!(row("failed_normal", "opie").contains(",1"), "{table}");
        assert!(row("failed_normal", "filter").contains(",3"), "{table}");
        assert!(row("revenue_usd", "opie").contains("0.4"), "{table}");
    }
    let folder = folder_with(FULL);
    let args = ["run", "full.toml", "--scheduler", "easy"];
    let output = Command::new(dormouse()).args(args).current_dir(folder.path()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--scheduler"), "{error}");
}

/// A run with more requests than its log keeps is repeated from its header.
#[test]
fn a_run_whose_log_was_too_long_is_made_again() {
    let many = FULL.replace(
        "request = [\n",
        "request = [\n  { at = \"0s\", type = \"large\", market = \"spot\", duration = \"1h\", count = 60000 },\n",
    );
    let folder = folder_with(&many);
    let here = folder.path();
    says(here, &["run", "full.toml", "-q", "--out", "out"]);
    let log = fs::read_to_string(here.join("out/events.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 1, "the header alone");
    assert!(says(here, &["check", "out"]).contains("of 60011 requests"));
    assert!(says(here, &["replay", "out"]).contains("all as recorded"));
    assert!(says(here, &["explain", "out", "request60008"]).contains("requested"));
}
