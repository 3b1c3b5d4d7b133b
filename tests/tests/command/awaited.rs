//! Coordinators and workers that are started by the same command every time, as containers are: a run that is refused
//! or over gives one line and a status, and does not hinder a repaired run.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use dormouse_tests::{dormouse, run_in};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The words of the command that begins a run in `runs/run`, or resumes it.
fn coordinator<'a>(experiment: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["coordinator", experiment, "--resume", "--out", "runs/run"];
    [&words[..], &["--listen", "127.0.0.1:0", "--workers", "1"], more].concat()
}

/// Runs a worker that waits for the run's token, at most for `wait`.
fn worker(folder: &Path, wait: &str) -> Output {
    let words = ["worker", "--coordinator", "127.0.0.1:1", "--secret-file", "runs/run/secret"];
    run_in(folder, &[&words[..], &["--root", "w", "--wait", wait]].concat())
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The last line of a command's output, which says why the command ended.
fn last_line(output: &Output) -> String {
    errors(output).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn workers_of_a_refused_run_end_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    for (words, why) in [
        (coordinator("j60-sc9", &[]), "j60-sc9"),
        (coordinator("j60-sc2", &["--speedup", "fast"]), "fast"),
        (coordinator("j60-sc2", &["--no-such-option"]), "--no-such-option"),
    ] {
        let refused = run_in(folder.path(), &words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", errors(&refused));
        let worker = worker(folder.path(), "1s");
        let said = last_line(&worker);
        assert_eq!(worker.status.code(), Some(2), "{words:?}: {said}");
        let is_said = said.starts_with("dormouse: the run was refused: ") && said.contains(why);
        assert!(is_said, "{words:?}: {said}");
        assert!(!folder.path().join("runs/run").exists(), "{words:?} left a run");
    }
}

/// The results of a run say nothing about a coordinator that is yet to start: only that coordinator tells workers
/// whether the run is over, whenever it comes.
#[test]
fn workers_of_a_run_that_is_over_end_well_once_its_coordinator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let made = ["run", "j60", "--set", "live.workers=1", "--out", "runs/run", "--quiet"];
    let made = run_in(folder.path(), &made);
    assert!(made.status.success(), "{}", errors(&made));
    // It stands for a live run: its header says that it is one.
    let log = folder.path().join("runs/run/events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"mode\":\"virtual\"", "\"mode\":\"live\"", 1)).unwrap();
    let alone = worker(folder.path(), "1s");
    assert_eq!(alone.status.code(), Some(2), "nobody said that it is over: {}", errors(&alone));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| worker(folder.path(), "60s"));
        // It waits by now, or else waits for what was said before: both are to end.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let over = run_in(folder.path(), &coordinator("j60", &[]));
        let said = String::from_utf8_lossy(&over.stdout).into_owned();
        assert_eq!(over.status.code(), Some(0), "{}", errors(&over));
        assert!(said.contains("the run is over; its results are in runs/run"), "{said}");
        let worker = waiting.join().unwrap();
        assert_eq!(worker.status.code(), Some(0), "{}", errors(&worker));
        let said = String::from_utf8_lossy(&worker.stdout).into_owned();
        assert!(said.contains("the run is over; its results are in runs/run"), "{said}");
    });
    // A worker that comes later waits for a coordinator as long as one takes to start.
    let late = worker(folder.path(), "1s");
    assert_eq!(late.status.code(), Some(0), "{}", errors(&late));
    // Another run took its place: no coordinator has spoken of that.
    fs::write(folder.path().join("runs/run/summary.json"), "{}").unwrap();
    assert_eq!(worker(folder.path(), "1s").status.code(), Some(2));
}

/// Begins a run, and ends its coordinator with a signal while it waits for workers.
fn stopped_while_it_waits(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut coordinator = Command::new(dormouse())
        .args(coordinator("j60-sc2", more))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(coordinator.stderr.take().unwrap());
    let mut all = String::new();
    while said.read_line(&mut all).unwrap() > 0 {
        if all.contains("listening on ") {
            let _ = kill(Pid::from_raw(coordinator.id().cast_signed()), Signal::SIGTERM);
        }
    }
    (coordinator.wait().unwrap().code(), all)
}

#[test]
fn a_coordinator_that_is_stopped_before_it_begins_leaves_no_run() {
    let folder = tempfile::tempdir().unwrap();
    for speedup in ["2000", "30"] {
        let (status, said) = stopped_while_it_waits(folder.path(), &["--speedup", speedup]);
        assert_eq!(status, Some(3), "at {speedup}: {said}");
        assert!(said.contains("stopped before it began"), "{said}");
        let left = folder.path().join("runs/run");
        assert!(!left.join("summary.json").exists(), "at {speedup}: a run of nothing is left");
    }
}
