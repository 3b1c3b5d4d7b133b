//! The experiments of `examples/experiments`: each runs, breaks no rule, and shows what its first line says.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use dormouse_tests::{dormouse_says, run_in, summary};
use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Values in the `summary.json` of each example, by JSON pointers.
const SHOWN: [(&str, &[(&str, f64)]); 14] = [
    // 36 minutes of work, and 10 for which all stands still.
    ("hibernation", &[("/makespan_s", 2759.9), ("/counts/resumes", 1.0), ("/work_lost_s", 0.0)]),
    // Both tasks lose what came after the checkpoint of the fourth minute.
    (
        "preemption",
        &[("/counts/preemptions", 1.0), ("/counts/restores", 2.0), ("/work_lost_s", 106.0)],
    ),
    // 25 minutes at full speed spend 20 credits and what is earned meanwhile; 15 more take 75.
    ("credits", &[("/makespan_s", 6000.0)]),
    // Taken at 8:52, where the price passes the bid, with the 28 minutes until it has fallen lost.
    (
        "price-record",
        &[("/counts/preemptions", 1.0), ("/makespan_s", 9010.0), ("/counts/restores", 1.0)],
    ),
    (
        "lifetimes",
        &[("/counts/preemptions", 2.0), ("/counts/restores", 2.0), ("/tasks/completed", 16.0)],
    ),
    ("scarce", &[("/counts/launches_refused", 10.0), ("/counts/vms_launched", 3.0)]),
    (
        "mass-preemption",
        &[
            ("/counts/preemptions", 3.0),
            ("/counts/launches_refused", 26.0),
            ("/tasks/completed", 8.0),
            ("/makespan_s", 4_602.0),
        ],
    ),
    // All begin again at 22:10 from the checkpoints of the tenth minute; the head stands still for 46 s five times more.
    ("gang", &[("/counts/preemptions", 1.0), ("/counts/restores", 4.0), ("/makespan_s", 4_560.0)]),
    // Five large jobs of ten minutes one after the other, and the small ones beside them.
    ("priorities", &[("/tasks/completed", 17.0), ("/makespan_s", 3_000.0)]),
    (
        "risky-spot",
        &[
            ("/counts/preemptions", 8.0),
            ("/counts/migrations", 16.0),
            ("/tasks/completed", 40.0),
            ("/makespan_s", 1_947.3),
        ],
    ),
    ("two-tiers", &[("/counts/background_only", 39.0), ("/counts/migrations", 49.0)]),
    ("job-log", &[("/tasks/completed", 150.0), ("/counts/rejected", 0.0)]),
    (
        "requests",
        &[("/requests/preemptible/terminated", 98.0), ("/requests/normal/terminated", 0.0)],
    ),
    ("shared", &[("/tasks/completed", 60.0), ("/counts/steals", 4.0)]),
];

#[test]
fn each_example_shows_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    for (name, values) in SHOWN {
        let file = examples().join(format!("experiments/{name}.toml"));
        let out = folder.path().join(name);
        let run =
            run_in(folder.path(), &["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        let summary = summary(&out);
        for (key, right) in values {
            let found = summary.pointer(key).and_then(Value::as_f64);
            let is_right = found.is_some_and(|found| (found - right).abs() < 0.1);
            assert!(is_right, "{name}: {key} is {found:?} and should be {right}");
        }
        let said = dormouse_says(&["check", out.to_str().unwrap()]);
        assert!(said.contains("no rule broken"), "{name}: {said}");
    }
}

#[test]
fn the_list_of_examples_has_each_with_its_first_line() {
    let list = fs::read_to_string(examples().join("README.md")).unwrap();
    let names: BTreeSet<String> = SHOWN.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(examples().join("experiments")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let line = text.lines().next().unwrap().strip_prefix("# ").unwrap();
        let row = format!("| `experiments/{name}.toml` | {line} |");
        assert!(list.lines().any(|listed| listed == row), "examples/README.md lacks: {row}");
        there.insert(name);
    }
    assert_eq!(there, names);
}

/// Three of the four members have stored a newer checkpoint than the one that all go on from.
#[test]
fn all_members_of_a_gang_go_on_from_their_last_common_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let file = examples().join("experiments/gang.toml");
    let run = run_in(folder.path(), &["run", file.to_str().unwrap(), "--out", "gang"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let log = fs::read_to_string(folder.path().join("gang/events.jsonl")).unwrap();
    let steps = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let effects: Vec<Value> =
        steps.flat_map(|step| step["effects"].as_array().cloned().unwrap_or_default()).collect();
    let of = |kind: &'static str| effects.iter().filter(move |effect| effect["effect"] == kind);
    let second = of("task-sent").filter(|sent| sent["attempt"] == 2);
    let begins: Vec<&Value> = second.map(|sent| &sent["from"]).collect();
    // Checkpoint 1 has ten minutes of an hour.
    assert_eq!(begins, vec![&serde_json::json!([1, 166_666]); 4]);
    let given_up = of("restore-fell-back").filter(|fell| fell["given_up"] == true);
    assert_eq!(given_up.count(), 3, "the workers had stored a newer one");
    let explained =
        dormouse_says(&["explain", folder.path().join("gang").to_str().unwrap(), "worker-0"]);
    let said = "checkpoint 2 was given up by the scheduler: checkpoint 1, with 16.6666% done, is tried instead";
    assert!(explained.contains(said), "{explained}");
}
