//! Runs with recorded prices and lifetimes: where in a record they begin, what is odd about the record, and bids.

use std::fs;

use dormouse_tests::{refused, run_in};
use serde_json::Value;

/// A record of ten hours, each with a price of its own.
const HOURS: &str = r#"
name = "anywhere"
[cloud]
boot = "0s"
preemption-notice = "0s"
prices.small = { file = "hours.csv", drawn-start = true, scale = 0.5 }
[[cloud.type]]
name = "small"
vcpus = 1
memory = "1 GiB"
spot = 0.03
on-demand = 0.105
[checkpoint]
policy = "none"
[workload]
deadline = "20h"
task = [{ runtime = "1m" }]
[scheduler]
name = "hads"
"#;

#[test]
fn a_run_begins_anywhere_in_a_record_and_a_vm_without_a_bid_has_the_providers() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let hour = |n: u32| format!("{},0.{:02}\n", n * 3_600, n + 1);
    write("hours.csv", &(0..=10).map(hour).collect::<String>());
    write("a.toml", HOURS);
    let run = |file: &str, seed: u32| -> Value {
        let (seed, out) = (seed.to_string(), format!("out-{seed}"));
        let args = ["run", file, "--json", "--seed", &seed, "--force", "--out", &out];
        let output = run_in(folder.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // What a VM costs an hour: half of the price of the hour in which the run begins.
    let cents = |summary: &Value| {
        let vm = &summary["vms"][0];
        assert_eq!(vm["market"], "spot", "{summary:#}");
        let lived = vm["ended_s"].as_f64().unwrap() - vm["launched_s"].as_f64().unwrap();
        100.0 * vm["cost_usd"].as_f64().unwrap() / (lived / 3_600.0)
    };
    let mut all: Vec<f64> = (1..=12).map(|seed| cents(&run("a.toml", seed))).collect();
    assert!(all.iter().all(|cents| (0.49..5.51).contains(cents)), "{all:?}");
    all.sort_by(f64::total_cmp);
    assert!(all[11] - all[0] > 1.5, "they begin in different hours: {all:?}");
    assert_eq!(run("a.toml", 3)["cost_usd"], run("a.toml", 3)["cost_usd"]);

    // From half a minute on it costs more than four tenths of the price on demand, $.105.
    let drawn = "{ file = \"hours.csv\", drawn-start = true, scale = 0.5 }";
    let rises = HOURS.replace(drawn, "[[\"0s\", 0.03], [\"30s\", 0.05]]");
    write("b.toml", &rises);
    let stays = run("b.toml", 1);
    assert_eq!(stays["counts"]["preemptions"], 0, "{stays:#}");
    write("c.toml", &rises.replace("boot =", "default-bid = 0.4\nboot ="));
    let taken = run("c.toml", 1);
    assert_eq!(taken["counts"]["preemptions"], 1, "{taken:#}");
    assert_eq!(taken["tasks"]["completed"], 1, "elsewhere: {taken:#}");
    let checked = run_in(folder.path(), &["check", "out-1"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    write("d.toml", &HOURS.replace("drawn-start", "start = \"1h\", drawn-start"));
    refused(folder.path(), &["run", "d.toml"], 2, &["d.toml:", "keep either start or drawn-start"]);
}

/// Two types with dated records; one record is not in order and ends five minutes after the run begins.
const DATED: &str = r#"
name = "dated"
[cloud]
boot = "0s"
preemption-notice = "0s"
prices = { small = "small.csv", large = "large.csv" }
[[cloud.type]]
name = "small"
vcpus = 1
memory = "1 GiB"
spot = 0.03
[[cloud.type]]
name = "large"
vcpus = 2
memory = "1 GiB"
spot = 0.06
[checkpoint]
policy = "none"
[workload]
deadline = "20h"
task = [{ runtime = "10m" }]
[scheduler]
name = "fifo"
fleet = [{ type = "small", market = "spot" }]
"#;

#[test]
fn what_is_odd_about_a_record_and_that_a_run_went_beyond_it_is_kept_with_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "small.csv",
        "2020-01-01 00:30:00,0.06\n2020-01-01 00:00:00,0.12\n2020-01-01 01:05:00,0.06\n",
    );
    write("large.csv", "2020-01-01 01:00:00,0.3\n2020-01-03 00:00:00,0.3\n");
    write("a.toml", DATED);
    let run = |args: &[&str]| -> Value {
        let args = [&["run", "a.toml", "--json", "--force", "--out", "out"], args].concat();
        let output = run_in(folder.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let of_run = run(&[]);
    let [large, small] = &of_run["prices"].as_array().unwrap()[..] else {
        panic!("two: {of_run:#}")
    };
    assert_eq!((&large["type"], &large["file"]), (&"large".into(), &"large.csv".into()));
    let notes = small["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().starts_with("1 of 3 rows are earlier"), "{notes:?}");
    // The run begins with the later record: five minutes of this one are left.
    let beyond = "its last price is of 300 s; the run went on for 300 s after that";
    assert!(notes[1].as_str().unwrap().starts_with(beyond), "{notes:?}");
    assert_eq!((notes.len(), &large["notes"]), (2, &serde_json::json!([])));
    let cost = of_run["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.01).abs() < 1e-6, "ten minutes at six cents, as at one o'clock: {cost}");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("1 of 3 rows are earlier") && page.contains(beyond), "{page}");
    for args in [["check", "out"], ["replay", "out"]] {
        assert!(run_in(folder.path(), &args).status.success(), "{args:?}");
    }
    // What was read is a part of the log: nothing is read again.
    write("small.csv", "");
    assert!(run_in(folder.path(), &["replay", "out"]).status.success());

    // A run whose prices end after it has nothing to be noted, and one without records has no such key.
    write("small.csv", "2020-01-01 00:00:00,0.06\n2020-01-01 02:00:00,0.06\n");
    assert_eq!(run(&[])["prices"][1]["notes"], serde_json::json!([]));
    let listed = run(&["--set", "cloud.prices={ small = [[\"0s\", 0.03]] }"]);
    assert!(listed.get("prices").is_none(), "{listed:#}");
    // Two records of other days have no common clock.
    write("large.csv", "2020-02-01 01:00:00,0.3\n2020-02-03 00:00:00,0.3\n");
    let words =
        ["large.csv", "small.csv", "2020-02-01 01:00:00 to 2020-02-03 00:00:00", "give records"];
    refused(folder.path(), &["run", "a.toml"], 2, &words);
}

#[test]
fn a_default_bid_is_known_to_who_waits_for_a_price_and_not_to_acc() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let text = r#"
name = "waits"
[cloud]
boot = "0s"
tariff = "started-hour"
preemption-notice = "0s"
default-bid = 0.5
prices.small = [["0s", 0.06], ["6d", 0.03]]
[[cloud.type]]
name = "small"
vcpus = 1
memory = "1 GiB"
spot = 0.03
on-demand = 0.1
[checkpoint]
policy = "none"
[workload]
deadline = "10d"
task = [{ runtime = "90m" }]
[scheduler]
name = "fifo"
fleet = [{ type = "small", market = "spot" }]
"#;
    write("a.toml", text);
    let output = run_in(folder.path(), &["run", "a.toml", "--json", "--out", "out"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["makespan_s"], 6.0 * 86_400.0 + 5_400.0, "{summary:#}");
    assert_eq!(summary["cost_usd"], 0.06, "two started hours: {summary:#}");
    write("b.toml", &text.replace("on-demand = 0.1\n", ""));
    refused(
        folder.path(),
        &["run", "b.toml"],
        2,
        &["default-bid", "of the price on demand, and small has none"],
    );
    write(
        "c.toml",
        &text.replace("fifo", "acc").replace("market = \"spot\"", "market = \"spot\", bid = 0.04"),
    );
    refused(folder.path(), &["run", "c.toml"], 2, &["default-bid", "under acc"]);
}

#[test]
fn vms_live_again_as_those_of_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "lives.csv",
        "lifetime_s,end_event,machine_type\n300,preempted,a\n9,preempted,b\n900,stop,a\n600,preempted,a\n",
    );
    let text = r#"
name = "again"
[cloud]
boot = "0s"
preemption-notice = "0s"
[[cloud.type]]
name = "small"
vcpus = 1
memory = "1 GiB"
spot = 0.03
[[interruption]]
model = "replay"
file = "lives.csv"
machine-type = "a"
[checkpoint]
policy = "none"
[workload]
deadline = "10h"
task = [{ runtime = "20m" }]
[scheduler]
name = "fifo"
fleet = [{ type = "small", market = "spot" }]
"#;
    write("a.toml", text);
    let output = run_in(folder.path(), &["run", "a.toml", "--json", "--out", "out"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The first is taken at 300 s, the second never was.
    let vms = summary["vms"].as_array().unwrap();
    let ended: Vec<_> = vms.iter().map(|vm| vm["ended_s"].as_f64().unwrap()).collect();
    assert_eq!(ended, [300.0, 1_500.0], "{summary:#}");
    for args in [["check", "out"], ["replay", "out"]] {
        assert!(run_in(folder.path(), &args).status.success(), "{args:?}");
    }
    for (from, to, words) in [
        ("machine-type = \"a\"", "machine-type = \"c\"", "no VMs of 'c'"),
        ("lives.csv", "gone.csv", "gone.csv"),
    ] {
        write("b.toml", &text.replace(from, to));
        refused(folder.path(), &["run", "b.toml"], 2, &[words]);
    }
    write("lives.csv", "lifetime_s,end_event\nx,preempted\n");
    refused(folder.path(), &["run", "a.toml", "--out", "x"], 2, &["lives.csv:2"]);
}
