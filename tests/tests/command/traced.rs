//! Traces of others as the requests of an experiment: the terminal, summary.json and the page say what was left out or
//! changed, and the run has the requests of the trace.

use std::fs;
use std::path::Path;

use dormouse_tests::{refused, run_in};
use serde_json::Value;

const EXPERIMENT: &str = r#"name = "traced"
[cloud]
boot = "0s"
hosts = [{ vcpus = 16, memory = "64 GiB", count = 2 }]
[[cloud.type]]
name = "small"
vcpus = 2
memory = "8 GiB"
on-demand = 0.1
spot = 0.03
[[cloud.type]]
name = "large"
vcpus = 8
memory = "32 GiB"
on-demand = 0.4
[workload]
kind = "requests"
"#;

/// A trace with a VM that was there before, one that ends with the trace, one of no length, one that is too large, and
/// one more.
const AZURE: &str = "\
a,s,d,0,3600,1,1,1,Unknown,2,4
b,s,d,600,7200,1,1,1,Unknown,4,8
c,s,d,900,900,1,1,1,Unknown,2,4
d,s,d,1200,1800,1,1,1,Unknown,>24,>64
e,s,d,900,1800,1,1,1,Interactive,2,8
";

fn run(at: &Path, keys: &str, file: &str) -> (String, Value) {
    fs::write(at.join("trace"), file).unwrap();
    fs::write(at.join("traced.toml"), format!("{EXPERIMENT}csv = \"trace\"\n{keys}")).unwrap();
    let output = run_in(at, &["run", "traced.toml", "--out", "out", "--force"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = fs::read_to_string(at.join("out/summary.json")).unwrap();
    (String::from_utf8(output.stdout).unwrap(), serde_json::from_str(&summary).unwrap())
}

#[test]
fn an_azure_trace_runs_and_says_what_it_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (said, summary) = run(at, "", AZURE);
    let requests = &summary["requests"];
    assert_eq!(requests["normal"]["requests"], 3);
    assert_eq!(requests["normal"]["completed"], 3);
    let too_large = "of a size that no type for their market holds";
    let left_out = &requests["file"]["left_out"];
    assert_eq!(
        (&left_out[too_large]["entries"], &left_out[too_large]["first-line"]),
        (&1.into(), &4.into())
    );
    assert_eq!(left_out["without any duration"]["entries"], 1);
    let before = "there before the trace began, and counted from its beginning";
    assert_eq!(requests["file"]["changed"][before]["entries"], 1);
    // a: 1 h of small, b: 6600 s of large, e: 900 s of small.
    let cents = 0.1 + 0.4 * 6_600.0 / 3_600.0 + 0.1 * 900.0 / 3_600.0;
    assert!((summary["cost_usd"].as_f64().unwrap() - cents).abs() < 1e-6, "{summary}");
    for text in [said, fs::read_to_string(at.join("out/report.html")).unwrap()] {
        assert!(
            text.contains("left out: 1 of a size that no type") && text.contains(before),
            "{text}"
        );
    }
    let stats = run_in(at, &["workload", "requests", "traced.toml"]);
    let stats = String::from_utf8(stats.stdout).unwrap();
    assert!(
        stats.contains("file                  Azure Public Dataset, vmtable; left out: 1 of"),
        "{stats}"
    );
    // Told by its content, whatever it is called.
    let stats = run_in(at, &["workload", "stats", "trace", "--json"]);
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(
        (&stats["requests"], &stats["file"]["left_out"]["without any duration"]["entries"]),
        (&4.into(), &1.into())
    );
    // The size that fits no type is mapped to one.
    let (_, summary) = run(at, "types-map = { \">24/>64\" = \"large\" }\n", AZURE);
    assert_eq!(summary["requests"]["normal"]["requests"], 4);
    // A file of ours says nothing of itself.
    let (said, summary) = run(at, "", "at,type,market,duration\n0,small,spot,1h\n");
    assert!(summary["requests"].get("file").is_none(), "{summary}");
    assert!(!said.contains("left out"), "{said}");
}

#[test]
fn keys_that_a_trace_needs_are_asked_for_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let events = "600000000,,1,0,7,1,u,3,9,0.0625,0.03,0.0001,0\n700000000,,1,0,7,4,u,3,9,,,,0\n";
    fs::write(at.join("part-00000-of-00500.csv"), events).unwrap();
    let write = |keys: &str| {
        let text = format!("{EXPERIMENT}csv = \"part-00000-of-00500.csv\"\n{keys}");
        fs::write(at.join("bad.toml"), text).unwrap();
    };
    write("");
    let parts = "part-00000-of-00500.csv: its sizes are shares of the largest machine";
    refused(
        at,
        &["run", "bad.toml"],
        2,
        &["bad.toml", "workload.csv", parts, "machine-vcpus = 64"],
    );
    write("machine-vcpus = 32\nmachine-memory = \"128 GiB\"\ntypes = \"nowhere.csv\"\n");
    refused(at, &["run", "bad.toml"], 2, &["nowhere.csv"]);
    write("machine-vcpus = 0\n");
    refused(at, &["run", "bad.toml"], 2, &["workload.machine-vcpus: 0 is out of range"]);
    write("columns = { when = \"time\" }\n");
    refused(
        at,
        &["run", "bad.toml"],
        2,
        &["no column is called 'when' here; write one of at, type"],
    );
    let model = EXPERIMENT.to_owned()
        + "spot-priority = 3\n[[workload.request]]\ntype = \"small\"\nmarket = \"spot\"\nduration = \"1h\"\n";
    fs::write(at.join("bad.toml"), model).unwrap();
    let words = [
        "workload.spot-priority: it says how a file is to be read, but no file is given; leave it out",
    ];
    refused(at, &["run", "bad.toml"], 2, &words);
    write("machine-vcpus = 32\nmachine-memory = \"128 GiB\"\n");
    let output = run_in(at, &["run", "bad.toml", "--out", "out"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
