//! Live runs of parallel jobs that are stopped, killed, or lose their machine: they are resumed, and all jobs come to
//! the right answers.
//!
//! They need what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use dormouse_tests::{
    JOBS, UnderWay, checks_and_replays, dormouse, events, jobs_experiment, nothing_is_left_but,
    shared_live_turn, summary, text, traces, wait_for, wait_for_report, workers_of,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Begins a live run of [`JOBS`] in this folder, with these options.
fn begun(folder: &Path, options: &[&str]) -> UnderWay {
    let file = folder.join("experiment.toml");
    fs::write(&file, jobs_experiment("goes-on", "easy", &JOBS)).unwrap();
    UnderWay::live(&folder.join("out"), &file, &[&["--scheduler", "measy"], options].concat())
}

/// Begins a live run of [`JOBS`], and waits until the first job has ended and others run.
fn in_the_middle(folder: &Path) -> UnderWay {
    let run = begun(folder, &[]);
    wait_for_report(run.out(), "task-finished", 0);
    run
}

/// Checks a finished run that lost its worker once: jobs that had ended stayed so, running jobs began again, and all
/// jobs are verified.
fn all_jobs_end_after_the_loss(out: &Path) {
    let summary = summary(out);
    assert_eq!(summary["tasks"]["verified"], 5, "{summary:#}");
    checks_and_replays(out);

    let log = events(out);
    let losses: Vec<_> = log.iter().filter(|e| e["event"] == "host-lost").collect();
    assert_eq!(losses.len(), 1, "{losses:?}");
    let (before, after) = log.split_at(log.iter().position(|e| e == losses[0]).unwrap());
    let tasks = |part: &[Value], report: &str| -> Vec<u64> {
        let of = part.iter().filter(|e| e["report"] == report);
        of.map(|e| e["task"].as_u64().unwrap()).collect()
    };
    let ended = tasks(before, "task-finished");
    let ran: Vec<_> =
        tasks(before, "task-started").into_iter().filter(|t| !ended.contains(t)).collect();
    assert!(!ended.is_empty() && !ran.is_empty(), "ended: {ended:?}; ran: {ran:?}");
    let mut all = [ended, tasks(after, "task-finished")].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4], "every job ends once");
    for task in ran {
        let again = after.iter().find(|e| e["report"] == "task-started" && e["task"] == task);
        let again = again.unwrap();
        assert!(again["attempt"].as_u64() > Some(1) && again["done"] == 0, "{again}");
    }
    let machines = log.iter().filter(|e| e["report"] == "vm-created").count();
    assert_eq!(machines, 2, "the machine is made again");
}

/// Calls `what` with a running run, its folder and the traces that were there before it; then checks that the run is
/// complete and left nothing behind.
fn survives(what: impl FnOnce(UnderWay, &Path, &[String])) {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let run = in_the_middle(folder.path());
    let out = run.out().to_owned();
    what(run, &out, &before);
    all_jobs_end_after_the_loss(&out);
    nothing_is_left_but(&before);
}

/// Resumes the run in this folder and waits for its end.
fn goes_on(out: &Path) {
    let resumed = UnderWay::resumed(out).ended();
    assert!(resumed.status.success(), "{}", text(&resumed));
}

#[test]
fn jobs_that_are_stopped_go_on() {
    survives(|run, out, before| {
        let stopped = run.told(Signal::SIGINT);
        let said = text(&stopped);
        assert_eq!(stopped.status.code(), Some(3), "{said}");
        let how = format!("dormouse resume {}", out.display());
        assert!(said.contains("paused") && said.contains(&how), "{said}");
        assert!(!out.join("summary.json").exists());
        nothing_is_left_but(before);
        goes_on(out);
    });
}

#[test]
fn jobs_whose_coordinator_is_killed_go_on() {
    survives(|run, out, before| {
        let _ = run.told(Signal::SIGKILL);
        // Only a folder in memory waits for the next start, which removes it.
        let in_memory = traces().into_iter().filter(|t| t.starts_with("/dev/shm"));
        nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());
        goes_on(out);
    });
}

#[test]
fn jobs_whose_worker_is_killed_run_on_one_that_is_started_again() {
    survives(|run, _, _| {
        let workers = workers_of(run.id());
        assert_eq!(workers.len(), 1, "{workers:?}");
        kill(workers[0], Signal::SIGKILL).unwrap();
        let ended = run.ended();
        assert!(ended.status.success(), "{}", text(&ended));
        assert!(text(&ended).contains("was started again"), "{}", text(&ended));
    });
}

/// Of these workers of a run on this host, the one that has the machine of the jobs: it has processes in its control
/// groups.
fn with_the_machine(out: &Path, workers: &[Pid]) -> Pid {
    let log = events(out);
    let created = log.iter().rfind(|event| event["report"] == "vm-created").unwrap();
    let host = log
        .iter()
        .find(|event| event["event"] == "host-joined" && event["host"] == created["host"])
        .unwrap();
    // Hosts are named after their workers: `NAME@INCARNATION`.
    let name = host["name"].as_str().unwrap().split('@').next().unwrap().to_owned();
    let is_it = |worker: &&Pid| {
        let said = fs::read(format!("/proc/{worker}/cmdline")).unwrap();
        said.split(|byte| *byte == 0).any(|word| word == name.as_bytes())
    };
    *workers.iter().find(is_it).unwrap()
}

#[test]
fn a_machine_whose_worker_is_lost_is_made_again_on_the_one_that_stood_by() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let run = begun(folder.path(), &["--workers", "2"]);
    let out = run.out().to_owned();
    wait_for_report(&out, "task-finished", 0);
    let workers = workers_of(run.id());
    assert_eq!(workers.len(), 2, "{workers:?}");
    kill(with_the_machine(&out, &workers), Signal::SIGKILL).unwrap();
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));

    all_jobs_end_after_the_loss(&out);
    let log = events(&out);
    let hosts: Vec<_> =
        log.iter().filter(|e| e["report"] == "vm-created").map(|e| e["host"].clone()).collect();
    let [first, second] = &hosts[..] else { panic!("{hosts:?}") };
    let lost = log.iter().find(|e| e["event"] == "host-lost").unwrap();
    assert!(lost["host"] == *first && first != second, "{lost}: {hosts:?}");
    let notes = summary(&out)["fidelity"]["notes"].to_string();
    assert!(notes.contains("1 VMs were lost with their host"), "{notes}");
    nothing_is_left_but(&before);
}

/// Settings by which every job takes a checkpoint once a second of real time.
const CHECKPOINT: &str =
    "[checkpoint]\npolicy = \"every\"\nperiod = \"60s\"\nof = \"work\"\nfixed = \"20s\"\n";

/// The work with which each attempt at a job began: job, attempt and part of the work in ppm.
fn sent_with(log: &[Value]) -> Vec<(u64, u64, u64)> {
    let effects = log.iter().filter_map(|event| event["effects"].as_array()).flatten();
    let sent = effects.filter(|effect| effect["effect"] == "task-sent");
    let of = |effect: &Value, key: &str| effect[key].as_u64().unwrap();
    sent.map(|e| (of(e, "task"), of(e, "attempt"), e["from"][1].as_u64().unwrap_or(0))).collect()
}

/// Checks that lost jobs continued from their checkpoints, that no checkpointed work was repeated, and that all
/// answers are right.
fn jobs_went_on_from_their_checkpoints(out: &Path) {
    let of_run = summary(out);
    assert_eq!(of_run["tasks"]["verified"], 5, "{of_run:#}");
    assert!(of_run["counts"]["checkpoints"].as_u64() > Some(0), "{of_run:#}");
    assert!(of_run["counts"]["restores"].as_u64() > Some(0), "{of_run:#}");
    checks_and_replays(out);
    let log = events(out);
    let lost = log.iter().position(|e| e["event"] == "host-lost").unwrap();
    let (before, after) = log.split_at(lost);
    let kept = |task: u64| {
        let of = before.iter().rfind(|e| e["report"] == "checkpoint-taken" && e["task"] == task);
        of.map_or(0, |e| e["done"].as_u64().unwrap())
    };
    let again = sent_with(after).into_iter().filter(|(_, attempt, _)| *attempt == 2);
    let mut restored = 0;
    for (task, attempt, from) in again {
        assert_eq!(from, kept(task), "job {task} goes on from what it had kept");
        let started = after.iter().find(|e| {
            e["report"] == "task-started" && e["task"] == task && e["attempt"] == attempt
        });
        let done = started.unwrap()["done"].as_u64().unwrap();
        assert_eq!(done, from, "it did not begin anew: {started:?}");
        restored += u32::from(from > 0);
    }
    assert!(restored > 0, "none had kept anything: {:?}", sent_with(&log));
}

/// Begins a run with checkpoints, and waits until a job has one.
fn keeping(folder: &Path, options: &[&str]) -> UnderWay {
    let file = folder.join("experiment.toml");
    fs::write(&file, jobs_experiment("keeps", "easy", &JOBS) + CHECKPOINT).unwrap();
    let options = [&["--scheduler", "measy"], options].concat();
    let run = UnderWay::live(&folder.join("out"), &file, &options);
    wait_for_report(run.out(), "checkpoint-taken", 0);
    run
}

#[test]
fn jobs_whose_worker_is_lost_go_on_from_their_checkpoints_on_the_one_that_stood_by() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let run = keeping(folder.path(), &["--workers", "2"]);
    let out = run.out().to_owned();
    let workers = workers_of(run.id());
    assert_eq!(workers.len(), 2, "{workers:?}");
    kill(with_the_machine(&out, &workers), Signal::SIGKILL).unwrap();
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    jobs_went_on_from_their_checkpoints(&out);
    let twin = says(&["twin", out.to_str().unwrap()]);
    assert!(twin.status.success(), "{}", text(&twin));
    nothing_is_left_but(&before);
}

#[test]
fn jobs_whose_coordinator_and_workers_are_killed_go_on_from_their_checkpoints() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let run = keeping(folder.path(), &[]);
    let out = run.out().to_owned();
    let _ = run.told(Signal::SIGKILL);
    let in_memory = traces().into_iter().filter(|t| t.starts_with("/dev/shm"));
    nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());
    goes_on(&out);
    jobs_went_on_from_their_checkpoints(&out);
    nothing_is_left_but(&before);
}

/// The output of `dormouse` with these words about a running run.
fn says(words: &[&str]) -> Output {
    Command::new(dormouse()).args(words).output().unwrap()
}

#[test]
fn an_open_run_takes_jobs_over_a_kill_and_ends_when_it_is_closed() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let run = begun(folder.path(), &["--open"]);
    let out = run.out().to_owned();
    wait_for_report(&out, "task-finished", 0);
    let dir = out.to_str().unwrap();
    let job = ["submit", dir, "--processors", "2", "--runtime", "120s", "--usage", "0.5"];
    let mine = [&job[..], &["--key", "mine"]].concat();
    let taken = says(&mine);
    assert!(taken.status.success() && text(&taken).contains("job 6 is submitted"), "{taken:?}");
    // No sooner is it answered than all are killed.
    let _ = run.told(Signal::SIGKILL);
    let in_memory = traces().into_iter().filter(|t| t.starts_with("/dev/shm"));
    nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());

    let run = UnderWay::resumed(&out);
    // Until its workers are there again it may not be reached.
    wait_for("the same job is known", Duration::from_secs(30), || {
        let known = says(&mine);
        if !known.status.success() {
            return Err(text(&known));
        }
        assert!(text(&known).contains("job 6 was submitted before"), "{known:?}");
        Ok(())
    });
    let other =
        says(&[&job[..2], &["--processors", "1", "--runtime", "60s", "--key", "mine"]].concat());
    assert!(text(&other).contains("is the key of job 6, a different job"), "{other:?}");
    let large = says(&["submit", dir, "--processors", "5", "--runtime", "60s"]);
    let said = text(&large);
    assert!(large.status.code() == Some(1) && said.contains("the machine has 4"), "{said}");
    let fat = says(&[&job[..], &["--memory", "1 MiB"]].concat());
    let said = text(&fat);
    assert!(fat.status.code() == Some(1) && said.contains("1 MiB for each process"), "{said}");
    assert!(text(&says(&job)).contains("job 7 is submitted"));
    let closed = says(&["close", dir]);
    assert!(closed.status.success(), "{}", text(&closed));
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let summary = summary(&out);
    assert_eq!(summary["tasks"]["verified"], 7, "{summary:#}");
    let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
    assert_eq!(jobs.lines().count(), 8, "{jobs}");
    checks_and_replays(&out);
    let twin = says(&["twin", dir]);
    assert!(twin.status.success(), "{}", text(&twin));
    // Nobody serves it any more.
    let late = says(&job);
    assert!(late.status.code() == Some(1) && text(&late).contains("is over"), "{}", text(&late));
    nothing_is_left_but(&before);
}

#[test]
fn jobs_whose_worker_dies_before_they_begin_begin_anew() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    fs::write(&file, jobs_experiment("goes-on", "easy", &JOBS)).unwrap();
    let dir = out.to_str().unwrap();
    let run = UnderWay::live(&out, &file, &[]);
    let worker = wait_for("it has a worker", Duration::from_secs(20), || {
        workers_of(run.id()).first().copied().ok_or_else(|| "there is none".to_owned())
    });
    kill(worker, Signal::SIGKILL).unwrap();
    let ended = run.ended();
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("dormouse resume {dir}")), "{said}");

    goes_on(&out);
    assert_eq!(summary(&out)["tasks"]["verified"], 5);
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}
