//! Programs that read a folder of their worker's host, in live runs: they may if the host's operator allows it,
//! read-only, and after a move as well.
//!
//! They need what the other live tests need (`whole_runs.rs`), and Python.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::{dormouse, events, nothing_is_left_but, shared_live_turn, traces};

/// Settings of a cloud with one VM, which is taken away in the middle of the work.
const CLOUD: &str = r#"name = "own-mounts"
[cloud]
boot = "5s"
preemption-notice = "60s"
[[cloud.type]]
name = "v"
vcpus = 1
memory = "300 MiB"
on-demand = 0.1
spot = 0.03
limits = { spot = 40, on-demand = 0 }
[[interruption]]
model = "schedule"
acts = [{ at = "40s", action = "preempt", all = true }]
[scheduler]
name = "fifo"
fleet = [{ type = "v", market = "spot", count = 1 }]
[checkpoint]
policy = "every"
period = "60m"
[live]
speedup = 10
[workload]
kind = "bag"
deadline = "60m"
"#;

/// A program that keeps a library of the folder open and mapped, and tries to write there.
const READER: &str = r#"
import mmap, os, sys, time
folder = sys.argv[1]
file = open(folder + "/sub/data")
pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
time.sleep(10)
said = pages[:5].decode() + " " + open(folder + "/sub/data").read().strip()
for what in (lambda: open(folder + "/new", "w"), lambda: os.listdir(folder + "/.."), lambda: os.chmod(folder + "/sub", 0o777)):
    try: said += " %s" % what()
    except OSError as error: said += " %d" % error.errno
open("result", "w").write(said)
"#;

fn run(folder: &Path, out: &Path, mounts: &Path) -> Output {
    let command = ["/usr/bin/python3", "reader.py", mounts.to_str().unwrap()];
    let task = format!(
        "[[workload.task]]\nname = \"reads\"\ncommand = {command:?}\nmounts = [{mounts:?}]\n\
         outputs = [\"result\"]\nmemory = \"100 MiB\"\n"
    );
    let file = folder.join("experiment.toml");
    fs::write(&file, format!("{CLOUD}{task}")).unwrap();
    fs::write(folder.join("reader.py"), READER).unwrap();
    let mut command = Command::new(dormouse());
    command.args(["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()]);
    command.env("DORMOUSE_ALLOW_MOUNTS", mounts);
    command.output().unwrap()
}

#[test]
fn folders_of_the_host_are_read_where_they_are_allowed() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    // Tasks have a /tmp of their own.
    let lent = tempfile::Builder::new().prefix("dormouse-lent-").tempdir_in("/opt").unwrap();
    fs::create_dir(lent.path().join("sub")).unwrap();
    fs::write(lent.path().join("sub/data"), "lent to all\n").unwrap();
    let _ = Command::new("chmod").args(["-R", "a+rX"]).arg(lent.path()).status().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let ran = run(folder.path(), &out, lent.path());
    assert!(ran.status.success(), "{ran:?}");
    let said = fs::read_to_string(out.join("tasks/0/outputs/result")).unwrap();
    // Read-only (30), and of the folder above nothing but this one.
    let name = lent.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(said, format!("lent  lent to all 30 ['{name}'] 30"));
    let starts = events(&out).into_iter().filter(|event| event["report"] == "task-started");
    let starts: Vec<_> = starts.map(|event| event["done"].as_u64().unwrap()).collect();
    assert!(starts.len() == 2 && starts[1] > 0, "it was not moved: {starts:?}");
    nothing_is_left_but(&before);
}
