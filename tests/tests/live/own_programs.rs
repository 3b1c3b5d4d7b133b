//! Users' programs as tasks of live runs: their VMs are taken away, they continue from their checkpoints on other VMs,
//! and their outputs are the same as without disturbance.
//!
//! They need what the other live tests need (`whole_runs.rs`), and the programs themselves, which `scripts/test`
//! installs: Python with numpy and SQLite, minisat, xz.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dormouse_tests::{
    checks_and_replays, dormouse_says, nothing_is_left_but, shared_live_turn, summary, traces,
};

/// Three VMs on two hosts, all taken away in the middle of the work; their replacements continue from the checkpoints
/// of the tasks.
const CLOUD: &str = r#"name = "own-programs"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "20s"
preemption-notice = "20s"
[[interruption]]
model = "schedule"
acts = [{ at = "60s", action = "preempt", type = "c3.large" }]
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 3 }]
[checkpoint]
policy = "every"
period = "20s"
fixed = "2s"
per-megabyte = "0s"
[live]
speedup = 20
workers = 2
[workload]
kind = "bag"
deadline = "45m"
"#;

/// A program, its input, and its outputs that are the same in every run.
struct Kind {
    name: &'static str,
    command: &'static [&'static str],
    inputs: &'static [&'static str],
    output: &'static str,
}

const KINDS: [Kind; 6] = [
    // A training loop, whose data are in a large file without a name.
    Kind {
        name: "numpy",
        command: &["/usr/bin/python3", "numpy_loop.py", "60000"],
        inputs: &["numpy_loop.py"],
        output: "weights.txt",
    },
    // A pool of processes, fed over pipes.
    Kind {
        name: "pool",
        command: &["/usr/bin/python3", "pool.py", "120"],
        inputs: &["pool.py"],
        output: "factors.txt",
    },
    // Two threads that talk over TCP.
    Kind {
        name: "tcp",
        command: &["/usr/bin/python3", "talk.py", "4000"],
        inputs: &["talk.py"],
        output: "digest.txt",
    },
    // A load of SQLite.
    Kind {
        name: "sql",
        command: &["/usr/bin/python3", "sql.py", "400000"],
        inputs: &["sql.py"],
        output: "sums.csv",
    },
    // A SAT solver, which says with status 20 that there is no solution.
    Kind {
        name: "sat",
        command: &["sh", "-c", "minisat pigeons.cnf answer.txt; test $? = 20"],
        inputs: &["pigeons.cnf"],
        output: "answer.txt",
    },
    // A packer with two threads.
    Kind {
        name: "xz",
        command: &["sh", "-c", "xz --threads=2 --keep -3 --stdout words.txt > words.xz"],
        inputs: &["words.txt"],
        output: "words.xz",
    },
];

/// Writes the programs and their input to a folder.
fn provide(folder: &Path) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/own");
    for entry in fs::read_dir(&fixtures).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, folder.join(from.file_name().unwrap())).unwrap();
    }
    let pigeons = Command::new("/usr/bin/python3")
        .args([fixtures.join("pigeons.py").as_os_str(), "10".as_ref()])
        .output()
        .unwrap();
    fs::write(folder.join("pigeons.cnf"), pigeons.stdout).unwrap();
    let words = (0_u64..100_000).map(|n| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    fs::write(folder.join("words.txt"), words.collect::<String>()).unwrap();
}

/// The outputs of a program that runs without disturbance.
fn undisturbed(kind: &Kind, folder: &Path) -> Vec<u8> {
    let alone = tempfile::tempdir().unwrap();
    for input in kind.inputs {
        fs::copy(folder.join(input), alone.path().join(input)).unwrap();
    }
    let [program, arguments @ ..] = kind.command else { unreachable!("each has a program") };
    let ended = Command::new(program).args(arguments).current_dir(alone.path()).output().unwrap();
    assert!(ended.status.success(), "{}: {ended:?}", kind.name);
    fs::read(alone.path().join(kind.output)).unwrap()
}

fn task_of(kind: &Kind) -> String {
    let (name, command, inputs, output) = (kind.name, kind.command, kind.inputs, kind.output);
    format!(
        "[[workload.task]]\nname = {name:?}\ncommand = {command:?}\ninputs = {inputs:?}\n\
         outputs = [{output:?}]\nruntime = {{ \"c3.large\" = \"300s\" }}\nmemory = \"200 MB\"\n\
         directory = \"64 MiB\"\n"
    )
}

#[test]
fn programs_of_others_go_on_on_other_vms_and_leave_what_they_leave_undisturbed() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    provide(folder.path());
    let file = folder.path().join("experiment.toml");
    let tasks: String = KINDS.iter().map(task_of).collect();
    fs::write(&file, format!("{CLOUD}{tasks}")).unwrap();
    let out = folder.path().join("out");
    let words = ["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()];
    let _ = dormouse_says(&words);
    let of_run = summary(&out);
    assert_eq!(of_run["tasks"]["completed"], 6, "{of_run:#}");
    // Nothing checks them here but this test.
    assert_eq!(of_run["tasks"]["reported"], 6, "{of_run:#}");
    // One whose checkpoint is not there in time begins anew.
    assert!(of_run["counts"]["restores"].as_u64().unwrap() >= 3, "{of_run:#}");
    checks_and_replays(&out);
    for (n, kind) in KINDS.iter().enumerate() {
        let task: PathBuf = out.join(format!("tasks/{n}"));
        let left = fs::read(task.join("outputs").join(kind.output));
        let left = left.unwrap_or_else(|error| panic!("{}: {error}: {of_run:#}", kind.name));
        assert_eq!(left, undisturbed(kind, folder.path()), "{}", kind.name);
    }
    nothing_is_left_but(&before);
}

/// Four tasks: one checks its answer, one is not checked, one fails, and one gives a wrong answer.
const ENDS: &str = r#"
[[workload.task]]
name = "checked"
command = ["/bin/true"]
verify = ["/bin/true"]
runtime = { "c3.large" = "20s" }
memory = "10 MB"
[[workload.task]]
name = "unchecked"
command = ["/bin/true"]
runtime = { "c3.large" = "20s" }
memory = "10 MB"
[[workload.task]]
name = "failing"
command = ["/bin/false"]
runtime = { "c3.large" = "20s" }
memory = "10 MB"
[[workload.task]]
name = "wrong"
command = ["/bin/true"]
verify = ["/bin/false"]
runtime = { "c3.large" = "20s" }
memory = "10 MB"
"#;

/// A program that failed is nowhere called done: on the terminal, in the summary, in the tables, on the page or by
/// `explain`.
#[test]
fn a_program_that_failed_is_never_called_done() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("ends.toml"), folder.path().join("out"));
    let cloud = CLOUD.replace("at = \"60s\"", "at = \"2h\"");
    fs::write(&file, cloud + ENDS).unwrap();
    let words = ["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()];
    let run = Command::new(dormouse_tests::dormouse()).args(words).output().unwrap();
    let [said, errors] =
        [&run.stdout, &run.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert_eq!(run.status.code(), Some(4), "{said}{errors}");
    assert!(errors.contains("2 of 4 tasks failed; see exit in tasks.csv"), "{errors}");
    let first = said.lines().next().unwrap().trim();
    assert!(
        first.starts_with("failed        2 of 4 tasks: first that of task2 (failing)"),
        "{said}"
    );
    assert!(said.contains("1 of 4 verified, 1 reported, 2 failed"), "{said}");
    assert!(said.contains("DEADLINE MISSED"), "{said}");
    let of_run = summary(&out);
    let counts = ["total", "completed", "verified", "reported", "failed", "given_up"];
    let counts = counts.map(|key| of_run["tasks"][key].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 1, 1, 2, 0], "{of_run:#}");
    assert_eq!(of_run["deadline_met"], false);
    let explained = |task: &str| dormouse_says(&["explain", out.to_str().unwrap(), task]);
    for (task, says) in [
        ("task0", "It was completed and verified at "),
        ("task1", "It was reported done by its worker at "),
        ("task2", ": its program returned status 1."),
        ("task3", ": its program returned status 0, and its check status 1."),
    ] {
        assert!(explained(task).contains(says), "no '{says}' in {}", explained(task));
    }
    for failed in ["task2", "task3"] {
        let told = explained(failed);
        assert!(told.contains("It failed at ") && !told.contains("completed"), "{told}");
    }
    let rows = fs::read_to_string(out.join("tasks.csv")).unwrap();
    let statuses: Vec<_> = rows.lines().skip(1).map(|row| row.split(',').nth(3).unwrap()).collect();
    assert_eq!(statuses, ["verified", "reported", "failed", "failed"]);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("1 verified, 1 reported, 2 failed"), "its tile");
    assert!(page.contains("failed: its program returned status 1"), "its tooltip");
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}

/// Two nodes of DAGMan: the first fails once and is run again, its script looks at what it left, and the second is given
/// that, over a file of the same name beside the DAG.
const DAG: &str = "JOB make make.sub\nJOB use use.sub\nPARENT make CHILD use\nVARS make runtime=\"30s\"\n\
    VARS use runtime=\"30s\"\nRETRY make 2\nSCRIPT POST make check.sh $RETURN made\n";

#[test]
fn what_a_node_leaves_goes_to_the_next_and_a_failed_one_is_run_again() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("flow.dag", DAG);
    write("make.sub", "executable = make.sh\ntransfer_output_files = made\nqueue\n");
    write("make.sh", "#!/bin/sh\necho run >>made\ntest $(wc -l <made) -ge 2\n");
    write("check.sh", "#!/bin/sh\ntest -s \"$2\" || exit 9\nexit \"$1\"\n");
    write(
        "use.sub",
        "executable = sort\narguments = -o used made more.txt\ntransfer_input_files = made, more.txt\n\
         transfer_output_files = used\nqueue\n",
    );
    write("made", "old\n");
    write("more.txt", "more\n");
    let cloud = CLOUD.replace("at = \"60s\"", "at = \"2h\"");
    write("flow.toml", &format!("{cloud}workflow = \"flow.dag\"\n"));
    let (file, out) = (folder.path().join("flow.toml"), folder.path().join("out"));
    let words = ["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()];
    let _ = dormouse_says(&words);
    let of_run = summary(&out);
    assert_eq!(of_run["tasks"]["completed"], 2, "{of_run:#}");
    let left = |path: &str| fs::read_to_string(out.join("tasks").join(path)).unwrap();
    assert_eq!(left("0/outputs/made"), "run\nrun\n");
    let said = left("0/stderr");
    assert!(said.contains("make ended with status 1, and is run again (1 of 2)"), "{said}");
    assert_eq!(left("1/outputs/used"), "more\nrun\nrun\n");
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}
