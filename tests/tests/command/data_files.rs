//! Damaged data files that an experiment names: prices, and the jobs, types and plans of the Burst-HADS authors. Each
//! mistake is reported with its file, line and column.

use std::fs;

use dormouse_tests::{BAG, refused, run_in};

#[test]
fn bad_files_of_prices() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let prices = "ec2-2020\"\nprices = { \"c3.large\" = { file = \"p.csv\", start = \"1h\" } }";
    fs::write(at.join("bad.toml"), BAG.replacen("ec2-2020\"", prices, 1)).unwrap();
    for (rows, words) in [
        ("", &["p.csv: ", "it has no prices"][..]),
        ("time,price\n", &["it has no prices"]),
        ("0,0.1\n5000;0.2\n", &["p.csv:2:1: ", "'5000;0.2' is not a time and a price"]),
        ("2009-12-01 00:00:00,0.1\n2009-02-29 01:00:00,0.1\n", &["p.csv:2:1: "]),
        ("0,0.1\n5000,-0.2\n", &["p.csv:2:1: "]),
        ("0,0.1\n3599,0.2\n", &["cloud.prices.c3.large", "ends 59m59s after its first row"]),
    ] {
        fs::write(at.join("p.csv"), rows).unwrap();
        refused(at, &["run", "bad.toml"], 2, words);
    }
    fs::write(at.join("p.csv"), b"\x7fELF\xff\xfe").unwrap();
    refused(at, &["run", "bad.toml"], 2, &["p.csv", "UTF-8"]);
    // What can be set right is, and told.
    fs::write(at.join("p.csv"), "5000,0.01\n0,0.03\n0,0.02\n").unwrap();
    let output = run_in(at, &["run", "bad.toml"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("p.csv: 1 of 3 rows"), "{said}");
}

const JOB: &str = r#"{"tasks": {"0": {"memory": 10.0, "command": "sh exec.sh 400",
  "runtime": {"c3.large": 167.0}}, "1": {"memory": 10.0, "runtime": {"c3.large": 167.0}}}}"#;
const ENV: &str = r#"{"instances": {"c3.large": {"gflops": 22.09, "memory": 3.75, "vcpu": 2,
  "prices": {"on-demand": 0.105, "preemptible": 0.0297}, "restrictions": {
  "limits": {"on-demand": 3, "preemptible": 3},
  "markets": {"on-demand": "yes", "preemptible": "yes"}}}}}"#;

#[test]
fn damaged_imports() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "\"memory\": 10.0, \"runtime\"",
            "\"memory\": \"x\", \"runtime\"",
            &["job.json:2:42: tasks.1.memory: 'x' is not a number"],
        ),
        (
            "\"memory\": 10.0, \"runtime\"",
            "\"memory\": -1, \"runtime\"",
            &["job.json:2:42: tasks.1.memory: -1 is out of range"],
        ),
        (
            "\"memory\": 10.0, \"runtime\"",
            "\"runtime\"",
            &["job.json:2:36: tasks.1: 'memory' is missing"],
        ),
        ("167.0}}, \"1\"", "null}}, \"1\"", &["job.json:2:15: tasks.0.runtime.c3.large: null"]),
        ("\"1\":", "\"7\":", &["job.json:2:36: tasks.7: task 1 is missing"]),
        ("\"1\":", "\"one\":", &["job.json:2:36: tasks.one: 'one' is not the number of a task"]),
        ("{\"tasks\":", "{\"tusks\":", &["job.json", "'tasks' is missing"]),
        ("}}}}", "}}", &["job.json:2:88: not valid JSON"]),
        ("22.09", "0", &["env.json:1:29: instances.c3.large.gflops: 0 is out of range"]),
        (
            "\"vcpu\": 2",
            "\"vcpu\": 0",
            &["env.json:1:62: instances.c3.large.vcpu: 0 is out of range"],
        ),
        (
            "\"preemptible\": 3}",
            "\"preemptible\": -3}",
            &["env.json:3:30: instances.c3.large.restrictions.limits.preemptible: -3"],
        ),
        (
            "\"yes\", ",
            "\"maybe\", ",
            &["env.json:4:15: instances.c3.large.restrictions.markets.on-demand: there is no"],
        ),
    ];
    for (from, to, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        assert!(JOB.contains(from) || ENV.contains(from), "'{from}' damages nothing");
        fs::write(folder.path().join("job.json"), JOB.replacen(from, to, 1)).unwrap();
        fs::write(folder.path().join("env.json"), ENV.replacen(from, to, 1)).unwrap();
        refused(folder.path(), &["run", "--job", "job.json", "--env", "env.json"], 2, words);
    }
    let folder = tempfile::tempdir().unwrap();
    let map = r#"{"instances": {"i.0": {"type": "c3.large", "market": "preemptible",
  "map": {"vcpu_0": {"one": {"start": 0, "end": 9}}, "xcpu": {}}}}}"#;
    for (plan, words) in [
        ("{\"vms\": 3}", "plan.json:1:9: not a plan"),
        ("{\n  \"vms\": [", "plan.json:2:10: not valid JSON"),
        (map, "plan.json:2:22: instances.i.0.map.vcpu_0.one: 'one' is not the number of a task"),
        (
            &map.replace("one", "1"),
            "plan.json:2:52: instances.i.0.map.xcpu: 'xcpu' is not the name of a vCPU",
        ),
        (&map.replace(" 9", " -9"), "plan.json:2:42: instances.i.0.map.vcpu_0.one.end: -9 is out"),
    ] {
        fs::write(folder.path().join("plan.json"), plan).unwrap();
        refused(folder.path(), &["run", "j60", "--plan", "plan.json"], 2, &[words]);
    }
}
