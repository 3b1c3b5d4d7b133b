//! Live runs of parallel jobs that are stopped, killed, or lose their machine: they go on, and all
//! jobs come to the right answers.
//!
//! They need what the other live tests need (`live.rs`).
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use dormouse_tests::{
    JOBS, checks_and_replays, dormouse, events, jobs_experiment, live_turn, nothing_is_left_but,
    summary, text, traces, wait_for, wait_for_report, workers_of,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A run under way; it ends with its test, however that ends.
struct Run {
    child: Option<Child>,
    out: PathBuf,
}

impl Run {
    fn begin(out: &Path, args: &[&str]) -> Self {
        let mut run = Command::new(dormouse());
        run.args(args).arg("--quiet").stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: Some(run.spawn().unwrap()), out: out.to_owned() }
    }

    /// One of [`JOBS`] in this folder, when the first of them has ended and others run.
    fn in_the_middle(folder: &Path) -> Self {
        let (file, out) = (folder.join("experiment.toml"), folder.join("out"));
        fs::write(&file, jobs_experiment("goes-on", "easy", &JOBS)).unwrap();
        let (file, dir) = (file.to_str().unwrap(), out.to_str().unwrap());
        let run = Self::begin(&out, &["run", file, "--scheduler", "measy", "--live", "--out", dir]);
        wait_for_report(&out, "task-finished", 0);
        run
    }

    fn resumed(out: &Path) -> Self {
        Self::begin(out, &["resume", out.to_str().unwrap()])
    }

    fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    fn told(self, signal: Signal) -> Output {
        kill(Pid::from_raw(self.id().cast_signed()), signal).unwrap();
        self.ended()
    }

    /// How it ended, which it does soon.
    fn ended(mut self) -> Output {
        wait_for("the run ends", Duration::from_secs(60), || {
            match self.child.as_mut().unwrap().try_wait().unwrap() {
                Some(_) => Ok(()),
                None => Err(format!("its log ends with {:?}", events(&self.out).last())),
            }
        });
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A whole run, whose worker was lost once: what had ended stays so, what ran began again, and
/// all jobs are verified.
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

/// Does `what` to a run that is under way, given its folder and the traces there were before it. In
/// the end the run is whole, and of it nothing is left.
fn survives(what: impl FnOnce(Run, &Path, &[String])) {
    let Some(_turn) = live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let run = Run::in_the_middle(folder.path());
    let out = run.out.clone();
    what(run, &out, &before);
    all_jobs_end_after_the_loss(&out);
    nothing_is_left_but(&before);
}

/// The run in this folder goes on to its end.
fn goes_on(out: &Path) {
    let resumed = Run::resumed(out).ended();
    assert!(resumed.status.success(), "{}", text(&resumed));
}

#[test]
fn jobs_that_are_stopped_go_on() {
    survives(|run, out, before| {
        let stopped = run.told(Signal::SIGINT);
        let said = text(&stopped);
        assert_eq!(stopped.status.code(), Some(1), "{said}");
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
        run.told(Signal::SIGKILL);
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

#[test]
fn jobs_whose_worker_dies_before_they_begin_begin_anew() {
    let Some(_turn) = live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    fs::write(&file, jobs_experiment("goes-on", "easy", &JOBS)).unwrap();
    let dir = out.to_str().unwrap();
    let run = Run::begin(&out, &["run", file.to_str().unwrap(), "--live", "--out", dir]);
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
