//! Errors on the command line say whose fault it is, and what to do.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{BAG, dormouse, refused, run_in, text};

#[test]
fn a_chart_of_an_hour_is_beside_that_of_the_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let whole = || fs::read(at.join("r/gantt.svg")).unwrap();
    assert!(run_in(at, &["run", "j60", "--out", "r"]).status.success());
    let before = whole();
    for (window, name) in [
        (&["--from", "10m"][..], "gantt-from-10m.svg"),
        (&["--from", "10m", "--until", "20m"], "gantt-10m-20m.svg"),
        (&["--until", "20m"], "gantt-until-20m.svg"),
        (&[], "gantt.svg"),
    ] {
        // Again, it comes out the same.
        for _ in 0..2 {
            let output = run_in(at, &[&["export", "r", "--as", "svg"], window].concat());
            assert!(output.status.success(), "{window:?}: {}", text(&output));
        }
        assert!(fs::read_to_string(at.join("r").join(name)).unwrap().contains("<svg"), "{name}");
    }
    assert_eq!(whole(), before);
    fs::write(at.join("r/gantt-until-20m.svg"), "mine").unwrap();
    refused(
        at,
        &["export", "r", "--as", "svg", "--until", "20m"],
        2,
        &["it exists already", "--force"],
    );
}

#[test]
fn what_is_said_with_schedulers_is_not_blamed_on_set() {
    let folder = tempfile::tempdir().unwrap();
    let compare = |schedulers: &str, on: &str, words: &[&str]| {
        let line = ["compare", "--schedulers", schedulers, "--on", on, "--seeds", "2"];
        refused(folder.path(), &line, 2, words);
    };
    compare(
        "burst-hads,foo",
        "j60",
        &["--schedulers: scheduler.name: there is no scheduler 'foo'"],
    );
    compare("burst-hads,easy", "j60", &["--schedulers: ", "schedules parallel jobs"]);
    compare("fcfs,hads", "batch-small", &["--schedulers: ", "schedules a bag of tasks"]);
}

#[test]
fn a_speed_up_of_a_virtual_run_is_said_to_be_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_in(folder.path(), &["run", "batch-small", "--speedup", "50", "--out", "r"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("--speedup is of live runs"), "{said}");
}

#[test]
fn public_data_that_is_not_here_is_fetched_by_a_script_and_found_where_that_puts_it() {
    const LOG: &str = "; MaxProcs: 100\n\
        1 0 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n\
        2 10 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n";
    let folder = tempfile::tempdir().unwrap();
    let (at, home) = (folder.path(), folder.path().join("home"));
    let run = || {
        Command::new(dormouse())
            .args(["run", "kth-sp2", "--out", "r"])
            .env("DORMOUSE_HOME", &home)
            .current_dir(at)
            .output()
            .unwrap()
    };
    // A working copy may have it by now.
    let near = dormouse().ancestors().any(|dir| dir.join(".dormouse/data").exists());
    if !near {
        let missing = run();
        assert_eq!(missing.status.code(), Some(2), "{}", text(&missing));
        for word in ["scripts/get-data", "--set workload.log=FILE"] {
            assert!(text(&missing).contains(word), "{}", text(&missing));
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/get-data");
    assert!(script.is_file(), "there is no {}", script.display());
    fs::create_dir_all(home.join("data")).unwrap();
    fs::write(home.join("data/KTH-SP2-1996-2.1-cln.swf.gz"), LOG).unwrap();
    let found = run();
    assert!(found.status.success(), "{}", text(&found));
    assert!(text(&found).contains("2 of 2"), "{}", text(&found));
}

#[test]
fn a_paper_of_which_nothing_can_be_judged_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["none of the paper's claims could be judged", "--data DIR"];
    let output = run_in(folder.path(), &["reproduce", "acc", "--seeds", "1", "--out", "r"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

/// Command lines as a newcomer types them. The answers are for a reader to judge, also whether they say what to type
/// instead: they are in `tests/tests/command/snapshots/remedies.txt`, which `SNAPSHOTS=overwrite` writes again.
const LINES: &[&str] = &[
    // Names of experiments.
    "run j06",
    "run mine",
    "run mien.toml",
    "run j60.toml",
    "run something",
    "run runs/j60-burst-hads-s1",
    "run empty",
    "show mine.toml",
    // Keys.
    "run j60 --set alpha=0.5",
    "run j60 --set deadline=45m",
    "sweep j60 --set alpha=0.1,0.5",
    "compare --schedulers hads,burst-hads --on j60 --set alpha=1",
    "run j60 --set scheduler.alpha 0.5",
    "sweep j60 scheduler.alpha=0.1,0.5",
    "run j60 --set workload.deadline=45",
    // Options.
    "run j60 --output out",
    "run j60 -o out",
    "run j60 --seeds 3",
    "run j60 j80",
    "run --experiment j80",
    "run --on j60 ./work.sh",
    "run",
    "--live j60",
    "coordinator j60 --live",
    "worker 127.0.0.1:7380",
    "compare burst-hads hads --on j60",
    "compare --schedulers burst-hads hads --on j60",
    "list schedulers",
    "runn j60",
    "reproduce acc/figure-99",
    "reproduce bursthads",
    "reproduce acc --data nowhere",
    // Folders of runs.
    "explain runs/j60-burst-hads-s1",
    "explain task1 runs/j60-burst-hads-s1",
    "explain runs/j60 task1",
    "explain j60 task1",
    "explain j80 task1",
    "explain runs/j60-burst-hads-s1 task99",
    "check runs",
    "check notes.txt",
    "check empty",
    "twin nowhere",
    "export nowhere --as svg",
    "resume nowhere",
    "resume runs/j60-burst-hads-s1",
    "watch nowhere",
    "watch 127.0.0.1:7380",
    "check lab1:7380",
    "watch notes.txt",
    "status nowhere",
    "events empty",
    "token runs/j60-burst-hads-s1",
    "token nowhere",
    "merge nowhere",
    "merge runs/j60-burst-hads-s1",
    "workload stats nowhere",
];

#[test]
fn wrong_lines_are_answered_with_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(run_in(at, &["run", "j60", "-q"]).status.success());
    let run = "runs/j60-burst-hads-s1";
    fs::write(at.join("mine.toml"), BAG).unwrap();
    fs::write(at.join("notes.txt"), "hello\n").unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    let mut answers = String::new();
    let mut answered = |line: &str, status| {
        let error = refused(at, &line.split(' ').collect::<Vec<_>>(), status, &[]);
        writeln!(answers, "$ dormouse {line}\n{error}").unwrap();
    };
    LINES.iter().for_each(|line| answered(line, 2));
    // Status 1: the run is right, and nobody serves it.
    answered(&format!("status {run}"), 1);
    fs::remove_file(at.join(run).join("summary.json")).unwrap();
    let log = fs::read_to_string(at.join(run).join("events.jsonl")).unwrap();
    let live = log.replacen("\"mode\":\"virtual\"", "\"mode\":\"live\"", 1);
    fs::write(at.join(run).join("events.jsonl"), live).unwrap();
    answered(&format!("status {run}"), 1);
    snapbox::assert_data_eq!(answers, snapbox::file!["snapshots/remedies.txt"].raw());
}

/// No remedy misleads: Clap's own tip for `-o` would be wrong, since after `--` comes a program of the user's own.
#[test]
fn no_remedy_misleads() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["run j60 -o out", "run j60 --seeds 3", "run j60 --colour"] {
        let output = run_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(!text(&output).contains("as a value"), "{}", text(&output));
    }
    let output = run_in(folder.path(), &["run", "something"]);
    assert!(!text(&output).contains("j80-sc3"), "fifty names are no answer: {}", text(&output));
}
