//! Whole live runs: real processes under real control groups, hibernated, checkpointed with
//! CRIU and moved.
//!
//! They need root, control groups and CRIU (`scripts/get-criu`). Elsewhere each is skipped and
//! says so; with `CI=true` that is a failure.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dormouse_tests::{
    Job, UnderWay, checks_and_replays, dormouse, dormouse_says, events, is_faithful,
    jobs_experiment, live_turn, nothing_is_left_but, shared_live_turn, summary, text,
    timed_live_turn, traces, wait_for, wait_for_event, wait_for_report, workers_of,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Tasks of 300 s on one spot type, which hibernates for good at 300 s, after the first
/// checkpoints (due at a third of the work): 22 seconds of real time, by the makespan in virtual time.
const HIBERNATES: &str = r#"name = "hibernates"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[[interruption]]
model = "schedule"
acts = [{ at = "5m", action = "hibernate", type = "c3.large" }]
[workload]
kind = "bag"
deadline = "16m"
[[workload.task]]
name = "small"
count = 8
memory = "10 MB"
runtime = { "c3.large" = "300s", "t3.large" = "300s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[live]
speedup = 30
share = 0.12
"#;

fn experiment(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("experiment.toml");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn tasks_of_a_hibernated_vm_go_on_elsewhere_from_their_checkpoints() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (experiment(folder.path(), HIBERNATES), folder.path().join("out"));
    let (file, dir) = (file.to_str().unwrap(), out.to_str().unwrap());
    let _ = dormouse_says(&["run", file, "--live", "--speedup", "30", "--out", dir]);

    let summary = summary(&out);
    assert_eq!(summary["mode"], "live");
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
    for count in ["hibernations", "migrations", "restores", "checkpoints"] {
        assert!(summary["counts"][count].as_u64().unwrap() > 0, "no {count}: {summary:#}");
    }
    no_work_is_done_twice(&events(&out));

    checks_and_replays(&out);
    nothing_is_left_but(&before);
}

#[test]
fn a_run_that_is_stopped_or_killed_leaves_nothing_and_goes_on() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    // What is gone on with runs on on-demand VMs mostly: a lost worker takes these away, too.
    let text_of = format!("{HIBERNATES}[checkpoint]\noverhead = 0.1\non = \"all\"\n");
    let (file, out) = (experiment(folder.path(), &text_of), folder.path().join("out"));
    let (file, dir) = (file.to_str().unwrap(), out.to_str().unwrap());
    let end_with = |run: UnderWay, signal| {
        // Nobody takes its folder from it.
        for other in [&["resume", dir][..], &["run", file, "--out", dir, "--force"]] {
            let refused = Command::new(dormouse()).args(other).output().unwrap();
            let said = text(&refused);
            assert_eq!(refused.status.code(), Some(2), "{other:?}: {said}");
            assert!(said.contains("a run is still writing its log there"), "{other:?}: {said}");
        }
        run.told(signal)
    };
    let lines = || fs::read_to_string(out.join("events.jsonl")).unwrap().lines().count();
    // Told to stop, it says how to go on with it.
    let run = UnderWay::live(&out, Path::new(file), &["--speedup", "30"]);
    wait_for_report(&out, "task-started", 0);
    let stopped = end_with(run, Signal::SIGTERM);
    assert_eq!(stopped.status.code(), Some(3), "{}", text(&stopped));
    let said = text(&stopped);
    assert!(said.contains("paused") && said.contains(&format!("dormouse resume {dir}")), "{said}");
    assert!(!out.join("summary.json").exists());
    nothing_is_left_but(&before);

    // Killed, its workers notice and clean up; only a folder in memory waits for the next start.
    let after = lines();
    let run = UnderWay::resumed(&out);
    wait_for_report(&out, "checkpoint-taken", after);
    end_with(run, Signal::SIGKILL);
    let before: Vec<_> = before
        .into_iter()
        .chain(traces().into_iter().filter(|t| t.starts_with("/dev/shm")))
        .collect();
    nothing_is_left_but(&before);
    let refused = Command::new(dormouse()).args(["run", file, "--live", "--out", dir]).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("dormouse resume"), "{}", text(&refused));

    // The log goes on where it ends, the tasks from their last checkpoints. A worker that dies is
    // started again.
    let after = lines();
    let run = UnderWay::resumed(&out);
    wait_for_report(&out, "task-started", after);
    for worker in workers_of(run.id()) {
        kill(worker, Signal::SIGKILL).unwrap();
    }
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    assert!(text(&ended).contains("was started again"), "{}", text(&ended));
    assert_eq!(summary(&out)["tasks"]["verified"], 8);
    let notes = summary(&out)["fidelity"]["notes"].to_string();
    assert!(notes.contains("resumed 2 times: its coordinator was away for up to"), "{notes}");
    no_work_is_done_twice(&events(&out));
    checks_and_replays(&out);
    let before: Vec<_> = before.into_iter().filter(|t| Path::new(t).exists()).collect();
    nothing_is_left_but(&before);
    assert!(!before.iter().any(|t| t.contains("dormouse-run-")), "not swept: {before:#?}");
}

#[test]
fn a_coordinator_that_stood_still_finds_its_workers_again() {
    /// Time for which a coordinator is stopped: twice the default of the allowed silence of a worker.
    const STOPPED: Duration = Duration::from_secs(10);
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let text_of = format!("{}lost-after = \"30s\"\n", HIBERNATES.replace("\"5m\"", "\"44m\""));
    let (file, out) = (experiment(folder.path(), &text_of), folder.path().join("out"));
    let run = UnderWay::live(&out, &file, &["--speedup", "30"]);
    wait_for_report(&out, "task-started", 0);
    run.signal(Signal::SIGSTOP);
    // This is how long it stands still: nothing is waited for.
    std::thread::sleep(STOPPED);
    run.signal(Signal::SIGCONT);
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let summary = summary(&out);
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    let lost = events(&out).iter().filter(|e| e["event"] == "host-lost").count();
    assert_eq!(lost, 0, "{summary:#}");
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}

/// Starts a worker with processes, mounts and folders separate from this test's.
fn worker_apart(address: &str, secret: &Path, name: &str, root: &Path) -> Child {
    Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(dormouse())
        .args(["worker", "--coordinator", address, "--name", name, "--of", "2", "--root"])
        .arg(root)
        .arg("--secret-file")
        .arg(secret)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn tasks_of_a_lost_worker_go_on_at_another_from_their_checkpoints() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    // Without the hibernation: all that goes wrong is the loss. Three VMs of this share of a core have room at the other
    // worker; with a nearer deadline there are more.
    let text_of = HIBERNATES.replace("\"5m\"", "\"44m\"").replace("\"16m\"", "\"20m\"");
    let text_of = text_of.replace("share = 0.12", "share = 0.15");
    let (file, out) = (experiment(folder.path(), &text_of), folder.path().join("out"));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let words = ["coordinator", file.to_str().unwrap(), "--listen", &address, "--workers", "2"];
    let coordinator =
        UnderWay::begin(&out, &[&words[..], &["--out", out.to_str().unwrap()]].concat());
    let secret = out.join("secret");
    wait_for("the run's secret", Duration::from_secs(20), || {
        if secret.exists() { Ok(()) } else { Err(format!("no {}", secret.display())) }
    });
    let mut workers =
        ["w1", "w2"].map(|name| worker_apart(&address, &secret, name, &folder.path().join(name)));
    // Lost is the one that took the first checkpoint, once it is stored with the coordinator.
    wait_for_event(&out, "a checkpoint is taken", |e| e["report"] == "checkpoint-taken");
    let log = events(&out);
    let vm = &log.iter().find(|e| e["report"] == "checkpoint-taken").unwrap()["vm"];
    let created = log.iter().find(|e| e["report"] == "vm-created" && &e["vm"] == vm).unwrap();
    let joined = |e: &&Value| e["event"] == "host-joined" && e["host"] == created["host"];
    let lost = log.iter().find(joined).unwrap()["name"].as_str().unwrap().starts_with("w2");
    let lost = usize::from(lost);
    kill(Pid::from_raw(workers[lost].id().cast_signed()), Signal::SIGKILL).unwrap();

    let ended = coordinator.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    for worker in &mut workers {
        worker.wait().unwrap();
    }
    let summary = summary(&out);
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    assert!(summary["counts"]["restores"].as_u64().unwrap() > 0, "{summary:#}");
    no_work_is_done_twice(&events(&out));
    checks_and_replays(&out);
    // Whoever killed the worker's namespace killed its guardian, too: the next start sweeps.
    let _ = Command::new(dormouse())
        .args(["run", file.to_str().unwrap(), "--live", "--speedup", "5000", "--out"])
        .arg(folder.path().join("refused"))
        .output()
        .unwrap();
    nothing_is_left_but(&before);
}

/// Checks that the last attempt of a task restored from a checkpoint has used, by its control
/// group, the CPU time of the work that the checkpoint did not hold.
fn no_work_is_done_twice(events: &[Value]) {
    let given = events[0]["live"]["share_ppm"].as_f64().unwrap() / 1e6 * 300.0 / 30.0;
    let mut restored = 0;
    for event in events.iter().filter(|e| e["report"] == "task-started") {
        let done = event["done"].as_f64().unwrap() / 1e6;
        let end = events.iter().find(|e| {
            e["report"] == "task-finished"
                && e["task"] == event["task"]
                && e["attempt"] == event["attempt"]
        });
        let Some(end) = end.filter(|_| done > 0.0) else { continue };
        let spent = end["real_cpu_us"].as_f64().unwrap() / 1e6;
        // CRIU's own time in the group, and starting, are small beside a tenth of the work.
        let most = given * (1.0 - done + 0.15);
        assert!(spent < most, "{spent} s of CPU time for {} of {given} s: {end}", 1.0 - done);
        restored += 1;
    }
    assert!(restored > 0, "no restored task finished");
}

#[test]
fn what_cannot_run_live_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path(), HIBERNATES);
    let file = file.to_str().unwrap();
    let refused = |args: &[&str], status: i32, words: &[&str]| {
        let output =
            Command::new(dormouse()).args(args).current_dir(folder.path()).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "'{word}' is not in what {args:?} says: {said}");
        }
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{args:?} left something: {left:?}");
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        &["coordinator", file, "--listen", &address],
        2,
        &[&address, "another program listens"],
    );
    refused(&["run", file, "--live", "--speedup", "0"], 2, &["--speedup"]);
    refused(&["run", file, "--live", "--virtual"], 2, &["--virtual"]);
    if nix::unistd::geteuid().is_root() {
        let fast = ["run", file, "--live", "--speedup", "5000"];
        refused(&fast, 2, &["CPU time", "speed-up"]);
    } else {
        refused(&["run", file, "--live"], 2, &["root", "--virtual"]);
    }
}

#[test]
fn a_run_that_checkpoints_is_refused_where_there_is_no_criu() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path(), HIBERNATES);
    let measy = folder.path().join("measy.toml");
    fs::write(&measy, jobs_experiment("consolidates", "measy", &CONSOLIDATES)).unwrap();
    for file in [&file, &measy] {
        let output = Command::new(dormouse())
            .args(["run", file.to_str().unwrap(), "--live"])
            .env("DORMOUSE_CRIU", "/nowhere/criu")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for word in ["CRIU: /nowhere/criu", "scripts/get-criu", "--virtual"] {
            assert!(said.contains(word), "no '{word}' in: {said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!folder.path().join("runs").exists());
    }
}

/// Four processors. Job 3 fits only the background at first, on the idle processor and below
/// job 1; when job 2 ends, two foregrounds are idle but not both of its own, so it has to move.
/// Job 4 is below all of them in the end and comes up where it is. Half a minute of real time.
const CONSOLIDATES: [Job; 8] = [
    (0, 2, 600, 600, 0.5),
    (0, 1, 240, 240, 1.0),
    (0, 2, 600, 900, 0.6),
    (300, 4, 300, 300, 0.5),
    (330, 3, 240, 240, 0.7),
    (360, 1, 120, 300, 1.0),
    (390, 1, 120, 120, 1.0),
    (420, 2, 120, 120, 0.8),
];

#[test]
fn parallel_jobs_move_and_swap_and_come_to_the_right_answers() {
    let Some(_turn) = timed_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let text = jobs_experiment("consolidates", "measy", &CONSOLIDATES);
    let (file, out) = (experiment(folder.path(), &text), folder.path().join("out"));
    let (file, dir) = (file.to_str().unwrap(), out.to_str().unwrap());
    let _ = dormouse_says(&["run", file, "--live", "--out", dir]);

    let summary = summary(&out);
    assert_eq!((&summary["mode"], &summary["speedup"]), (&"live".into(), &60.0.into()));
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    // Usually one and two. On a host that is busy elsewhere the phases may fall so that a job
    // whose turn it would be to swap has to move.
    let count = |what: &str| summary["counts"][what].as_u64().unwrap();
    assert!(count("migrations") > 0, "{summary:#}");
    assert!(count("migrations") + count("swaps") > 1, "{summary:#}");
    assert_eq!(summary["consolidation"]["migrations_lost"], 0, "{summary:#}");
    let moves: Vec<_> =
        events(&out).into_iter().filter(|event| event["report"] == "task-moved").collect();
    for moved in &moves {
        assert!(moved["done"].as_u64().unwrap() > 0, "it took its work along: {moved}");
        assert!(moved["bytes"].as_u64().unwrap() > 0, "{moved}");
    }
    assert_eq!(moves.len() as u64, summary["counts"]["migrations"].as_u64().unwrap());
    jobs_took_what_they_were_promised(&out, &summary);

    checks_and_replays(&out);
    nothing_is_left_but(&before);
}

/// Checks that every job took its promised time within 5 %, and the mean within 1 %: for jobs of two seconds, 20 ms.
/// The run's own verdict must agree, except for load of the host by others.
fn jobs_took_what_they_were_promised(out: &Path, summary: &Value) {
    let kept = &summary["consolidation"]["kept"];
    assert_eq!((&kept["jobs"], &kept["past"]), (&8.into(), &Value::Array(Vec::new())), "{kept}");
    let error = |what: &str| kept[what].as_f64().unwrap();
    assert!(error("worst_error").abs() <= 0.05 && error("mean_error").abs() <= 0.01, "{kept}");
    let fidelity = &summary["fidelity"];
    if error("mean_error").abs() > 0.005 {
        assert_eq!(fidelity["faithful"], false, "{fidelity}");
    } else {
        is_faithful(summary);
    }
    let csv = fs::read_to_string(out.join("jobs.csv")).unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    assert_eq!(columns[columns.len() - 2..], ["promised_s", "took_s"]);
    for job in lines {
        let [promised, took] = [2, 1].map(|n| job[job.len() - n].parse::<f64>().unwrap());
        assert!((took / promised - 1.0).abs() <= 0.05, "{job:?}");
        // It is in the foreground, alone or with others behind it: its promise is its run time.
        if job[0] == "1" {
            assert!((promised - 600.0).abs() < 0.1, "{job:?}");
        }
    }
}

/// Two jobs on processors of a ninth of a core each, six seconds of real time.
const TWO_JOBS: &str = r#"name = "two-jobs"
[workload]
kind = "jobs"
processors = 16
job = [
  { submitted = "0s", processes = 1, runtime = "360s", estimate = "360s", usage = 1.0 },
  { submitted = "0s", processes = 2, runtime = "360s", estimate = "360s", usage = 0.8 },
]
[scheduler]
name = "easy"
[live]
speedup = 60
"#;

/// A run whose quota is lifted for 200 ms is not faithful. Only builds with debug assertions have this fault.
#[test]
fn a_quota_that_is_lifted_for_200_ms_is_not_faithful() {
    // What it may use meanwhile has to be there.
    let Some(_turn) = live_turn() else { return };
    if !cfg!(debug_assertions) {
        return println!("skipped: a build for use has no faults");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path(), TWO_JOBS);
    let out = folder.path().join("out");
    let run = Command::new(dormouse())
        .args(["run", file.to_str().unwrap(), "--live", "--quiet", "--out"])
        .arg(&out)
        .env("DORMOUSE_FAULT", "lift-200ms")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run));
    let fidelity = &summary(&out)["fidelity"];
    assert_eq!(fidelity["faithful"], false, "{fidelity}");
    let notes = fidelity["notes"].to_string();
    assert!(notes.contains("its quota did not hold it"), "{notes}");
}

/// A worker started in another PID namespace leaves a live run alone, although it sees no owner of the run's
/// processes.
#[test]
fn a_start_in_another_pid_namespace_leaves_a_live_run_alone() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (experiment(folder.path(), TWO_JOBS), folder.path().join("out"));
    let run = UnderWay::live(&out, &file, &[]);
    wait_for_report(&out, "task-started", 0);
    let [worker] = workers_of(run.id())[..] else { panic!("it has one worker") };
    let words = fs::read_to_string(format!("/proc/{worker}/cmdline")).unwrap();
    let root = PathBuf::from(words.split('\0').skip_while(|w| *w != "--root").nth(1).unwrap());
    // Its jobs may end meanwhile.
    let lasts = |t: &String| !before.contains(t) && !t.starts_with("process");
    let held: Vec<_> = traces().into_iter().filter(lasts).collect();
    assert!(root.join("tasks").exists() && !held.is_empty(), "{} {held:?}", root.display());
    // What a killed run left, which this start takes away.
    let dead = root.parent().unwrap().with_file_name(format!("dormouse-run-{}-0", i32::MAX));
    fs::create_dir(&dead).unwrap();

    // It starts its worker, which sweeps, too, and is refused then.
    let fast = experiment(&out, HIBERNATES);
    let refused = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(dormouse())
        .args(["run", fast.to_str().unwrap(), "--live", "--speedup", "5000", "--out"])
        .arg(folder.path().join("refused"))
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(!dead.exists(), "it did not sweep");
    assert!(root.join("tasks").exists());
    let now = traces();
    assert!(held.iter().all(|t| now.contains(t)), "of {held:#?} are left {now:#?}");

    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    assert_eq!(summary(&out)["tasks"]["verified"], 2);
    nothing_is_left_but(&before);
}
