//! `dormouse check` finds edits in the folder of a finished run, whether or not their author also renews the seals.

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_log::{Chain, Seal};
use dormouse_tests::{dormouse, shared_live_turn};
use serde_json::Value;

fn run(folder: &Path, args: &[&str]) {
    let output = Command::new(dormouse()).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The status of a check of the folder `out`, and what it printed.
fn check(folder: &Path) -> (Option<i32>, String) {
    let output =
        Command::new(dormouse()).args(["check", "out"]).current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from} is not in {}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// Renews the seal, and the head in the summary, to match the edited files.
fn seal_again(out: &Path) {
    let head = Chain::of_file(&out.join(dormouse_log::FILE), u64::MAX).unwrap().head();
    let path = out.join("summary.json");
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    summary["log"] = serde_json::to_value(&head).unwrap();
    fs::write(&path, format!("{summary:#}\n")).unwrap();
    let mut seal = Seal::read(out).unwrap().unwrap();
    seal.log = head;
    for (name, hash) in &mut seal.files {
        *hash = Seal::hash(&out.join(name)).unwrap();
    }
    fs::write(out.join(dormouse_log::SEAL), seal.text()).unwrap();
}

fn copied(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// An edit of a file: the file's name, the old text, and the new text.
type Edit<'a> = (&'a str, &'a str, &'a str);

/// Checks that every edit of the run in `whole` is found while the seal is the old one.
fn are_found(folder: &Path, edits: &[Edit<'_>]) {
    found_with(folder, edits, &[false]);
}

/// Checks that every edit is found with a renewed seal, too: what follows from the log can't be changed in the log nor
/// in other files.
fn all_are_found(folder: &Path, edits: &[Edit<'_>]) {
    found_with(folder, edits, &[false, true]);
}

fn found_with(folder: &Path, edits: &[Edit<'_>], forged: &[bool]) {
    let (whole, out) = (folder.join("whole"), folder.join("out"));
    copied(&whole, &out);
    assert_eq!(check(folder).0, Some(0), "{}", check(folder).1);
    for (name, from, to) in edits {
        for &forged in forged {
            copied(&whole, &out);
            edit(&out.join(name), from, to);
            if forged {
                seal_again(&out);
            }
            let (status, said) = check(folder);
            assert_eq!(status, Some(1), "{name}: {from} -> {to}, forged: {forged}: {said}");
        }
    }
}

fn summary(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("whole/summary.json")).unwrap()).unwrap()
}

#[test]
fn every_edit_of_a_bag_in_virtual_time_is_found() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "j60-sc4", "-q", "--out", "whole"]);
    let cost = format!("\"cost_usd\": {}", summary(folder.path())["cost_usd"]);
    all_are_found(
        folder.path(),
        &[
            ("summary.json", &cost, "\"cost_usd\": 0.000001"),
            ("summary.json", "\"hibernations\": ", "\"hibernations\": 1"),
            ("events.jsonl", "\"deadline\":", "\"deadline\":1"),
            ("events.jsonl", "\"report\":\"task-finished\"", "\"report\": \"task-finished\""),
            ("tasks.csv", "task,", "Task,"),
            ("vms.csv", "\n0,", "\n00,"),
            ("report.html", "<", " <"),
            ("gantt.svg", "<svg", "<svg "),
        ],
    );
    // Of real time only the seal knows.
    copied(&folder.path().join("whole"), &folder.path().join("out"));
    edit(&folder.path().join("out/summary.json"), "\"wall_s\": 0.", "\"wall_s\": 9.");
    let (status, said) = check(folder.path());
    assert!(status == Some(1) && said.contains("summary.json is not as it was written"), "{said}");
    // A file that is gone, a seal that is gone.
    for name in ["vms.csv", "seal.json"] {
        copied(&folder.path().join("whole"), &folder.path().join("out"));
        fs::remove_file(folder.path().join("out").join(name)).unwrap();
        let (status, said) = check(folder.path());
        assert!(status == Some(1) && said.contains(&format!("{name} is missing")), "{said}");
    }
    // A file that nobody left.
    copied(&folder.path().join("whole"), &folder.path().join("out"));
    fs::write(folder.path().join("out/vms-2.csv"), "vm\n").unwrap();
    let (status, said) = check(folder.path());
    assert!(status == Some(1) && said.contains("vms-2.csv was added"), "{said}");
    // As an older version left it.
    copied(&folder.path().join("whole"), &folder.path().join("out"));
    edit(&folder.path().join("out/events.jsonl"), "\"chain\":\"blake3\",", "");
    let (status, said) = check(folder.path());
    assert!(status == Some(1) && said.contains("no hash chain, though there is a seal"), "{said}");
}

#[test]
fn every_edit_of_jobs_and_requests_in_virtual_time_is_found() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "shared-small", "-q", "--out", "whole"]);
    let log = fs::read_to_string(folder.path().join("whole/events.jsonl")).unwrap();
    let submitted = log.lines().find(|line| line.contains("\"event\":\"submitted\"")).unwrap();
    let runtime = submitted.split("\"runtime\":").nth(1).unwrap();
    let runtime = runtime.split(',').next().unwrap();
    let job = format!("\"runtime\":{runtime},");
    // A hundred times as long as it was.
    let longer = format!("\"runtime\":{runtime}00,");
    all_are_found(
        folder.path(),
        &[
            ("events.jsonl", &job, &longer),
            ("events.jsonl", "\"processors\":", "\"processors\":1"),
            ("jobs.csv", "\n1,", "\n 1,"),
        ],
    );
}

/// Every edit of a live run is found. These runs need root, control groups and CRIU.
#[test]
fn every_edit_of_a_live_run_is_found() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let set =
        ["run", "hello", "--live", "-q", "--out", "whole", "--speedup", "30", "--set", "seed=3"];
    let experiment = "name = \"hello\"\n[cloud]\ncatalogue = \"ec2-2020\"\n[workload]\nkind = \"bag\"\ndeadline = \"30m\"\n\
        [[workload.task]]\nname = \"t\"\ncount = 3\nmemory = \"10 MB\"\n\
        runtime = { \"c3.large\" = \"120s\", \"c4.large\" = \"110s\" }\n\
        [scheduler]\nname = \"burst-hads\"\n[live]\nshare = 0.08\n";
    fs::write(folder.path().join("hello.toml"), experiment).unwrap();
    let set = set.map(|word| if word == "hello" { "hello.toml" } else { word });
    run(folder.path(), &set);
    let found = summary(folder.path());
    assert_eq!((&found["tasks"]["verified"], &found["tasks"]["reported"]), (&3.into(), &0.into()));
    assert_eq!(found["fidelity"]["tasks_judged"], 3, "{found:#}");
    let cost = format!("\"cost_usd\": {}", found["cost_usd"]);
    // What a worker measured and no figure shows is bound by the seal alone.
    are_found(
        folder.path(),
        &[
            ("events.jsonl", "\"real_took_us\":", "\"real_took_us\":1"),
            ("events.jsonl", "\"real_received_us\":", "\"real_received_us\":1"),
            ("events.jsonl", "\"busy_us\":", "\"busy_us\":7"),
            ("events.jsonl", "\"share_ppm\":", "\"share_ppm\":1"),
        ],
    );
    all_are_found(
        folder.path(),
        &[
            ("summary.json", &cost, "\"cost_usd\": 0.000001"),
            ("summary.json", "\"tasks_judged\": 3", "\"tasks_judged\": 4"),
            ("events.jsonl", "\\\"digest\\\":\\\"", "\\\"digest\\\":\\\"0"),
            ("events.jsonl", "\"c3.large\":12", "\"c3.large\":1200"),
            ("tasks.csv", "verified", "completed"),
        ],
    );
}
