//! What the command line says where something is amiss: whose fault it is, and what to do.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

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
        &["there already", "--force"],
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

/// Lines that a stranger types, each with words that say what to type in its place.
#[test]
fn wrong_lines_are_answered_with_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(run_in(at, &["run", "j60", "-q"]).status.success());
    let run = "runs/j60-burst-hads-s1";
    fs::write(at.join("mine.toml"), BAG).unwrap();
    fs::write(at.join("notes.txt"), "hello\n").unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    let cases: &[(&str, &[&str])] = &[
        // Names of experiments.
        ("run j06", &["did you mean 'j60'?"]),
        ("run mine", &["did you mean 'mine.toml'?"]),
        ("run mien.toml", &["No such file", "did you mean 'mine.toml'?"]),
        ("run j60.toml", &["the built-in experiment is called j60", "dormouse show j60"]),
        ("run something", &["dormouse list"]),
        ("run runs/j60-burst-hads-s1", &["the folder of a run", "dormouse check"]),
        ("run empty", &["it is a folder", "give a TOML file"]),
        ("show mine.toml", &["show --json"]),
        // Keys.
        ("run j60 --set alpha=0.5", &["did you mean 'scheduler.alpha'?"]),
        ("run j60 --set deadline=45m", &["'workload.deadline'"]),
        ("sweep j60 --set alpha=0.1,0.5", &["did you mean 'scheduler.alpha'?"]),
        ("compare --schedulers hads,burst-hads --on j60 --set alpha=1", &["'scheduler.alpha'"]),
        ("run j60 --set scheduler.alpha 0.5", &["--set scheduler.alpha=0.5"]),
        ("sweep j60 scheduler.alpha=0.1,0.5", &["--set scheduler.alpha=0.1,0.5"]),
        ("run j60 --set workload.deadline=45", &["write a text with its unit"]),
        // Options.
        ("run j60 --output out", &["results go to --out"]),
        ("run j60 -o out", &["results go to --out"]),
        ("run j60 --seeds 3", &["--seed", "dormouse sweep"]),
        ("run j60 j80", &["dormouse compare --on j60,j80"]),
        ("run --experiment j80", &["dormouse run j80"]),
        ("run --on j60 ./work.sh", &["dormouse run --on j60 -- ./work.sh"]),
        ("run", &["<EXPERIMENT>", "such as: dormouse run"]),
        ("--live j60", &["dormouse run j60 --live"]),
        ("coordinator j60 --live", &["leave --live out"]),
        ("worker 127.0.0.1:7380", &["--coordinator 127.0.0.1:7380"]),
        ("compare burst-hads hads --on j60", &["--schedulers burst-hads,hads"]),
        ("compare --schedulers burst-hads hads --on j60", &["commas and no spaces"]),
        ("list schedulers", &["takes no name"]),
        ("runn j60", &["'run'"]),
        ("reproduce acc/figure-99", &["acc/figure-9"]),
        ("reproduce bursthads", &["burst-hads"]),
        ("reproduce acc --data nowhere", &["--data nowhere", "no such folder"]),
        // Folders of runs.
        ("explain runs/j60-burst-hads-s1", &["such as: dormouse explain"]),
        (
            "explain task1 runs/j60-burst-hads-s1",
            &["dormouse explain runs/j60-burst-hads-s1 task1"],
        ),
        ("explain runs/j60 task1", &["No such file", "did you mean runs/j60-burst-hads-s1?"]),
        (
            "explain j60 task1",
            &["that is an experiment, and a run of it is runs/j60-burst-hads-s1"],
        ),
        ("explain j80 task1", &["`dormouse run j80` makes a run of it"]),
        ("explain runs/j60-burst-hads-s1 task99", &["task0 to task59"]),
        ("check runs", &["it holds 1 run: give it: runs/j60-burst-hads-s1"]),
        ("check notes.txt", &["it is a file: give the folder of a run"]),
        ("check empty", &["empty/events.jsonl", "here is runs/j60-burst-hads-s1"]),
        ("twin nowhere", &["here is runs/j60-burst-hads-s1"]),
        ("export nowhere --as svg", &["here is runs/j60-burst-hads-s1"]),
        ("resume nowhere", &["here is runs/j60-burst-hads-s1"]),
        ("resume runs/j60-burst-hads-s1", &["virtual time", "`dormouse run j60`"]),
        ("watch nowhere", &["no such folder", "here is runs/j60-burst-hads-s1"]),
        ("watch notes.txt", &["it is no folder"]),
        ("status nowhere", &["HOST:PORT", "here is runs/j60-burst-hads-s1"]),
        ("events empty", &["empty/events.jsonl", "here is runs/j60-burst-hads-s1"]),
        ("token runs/j60-burst-hads-s1", &["live runs", "dormouse identity DIR"]),
        ("token nowhere", &["no such folder", "dormouse identity DIR"]),
        ("merge nowhere", &["no such folder", "--shard I/N"]),
        ("merge runs/j60-burst-hads-s1", &["it holds one run", "--shard I/N"]),
        ("workload stats nowhere", &["No such file", "check the path"]),
    ];
    for (line, words) in cases {
        refused(at, &line.split(' ').collect::<Vec<_>>(), 2, words);
    }
    // Status 1: the run is right, and nobody serves it.
    refused(at, &["status", run], 1, &["virtual time", "`dormouse check runs/j60-burst-hads-s1`"]);
    fs::remove_file(at.join(run).join("summary.json")).unwrap();
    let log = fs::read_to_string(at.join(run).join("events.jsonl")).unwrap();
    let live = log.replacen("\"mode\":\"virtual\"", "\"mode\":\"live\"", 1);
    fs::write(at.join(run).join("events.jsonl"), live).unwrap();
    refused(
        at,
        &["status", run],
        1,
        &["it was stopped", "`dormouse resume runs/j60-burst-hads-s1`"],
    );
}

/// Clap's own tip for `-o` is wrong here: behind `--` is a program of the user's own.
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
