//! Checkpoints in whole live runs, taken when their scheme or the scheduler decides.
//!
//! They need root, control groups and CRIU (`scripts/get-criu`). Elsewhere each is skipped and
//! says so; with `CI=true` that is a failure.

use std::fs;
use std::path::Path;

use dormouse_tests::{
    checks_and_replays, dormouse_says, events, is_faithful, nothing_is_left_but, summary,
    timed_live_turn, traces,
};
use serde_json::Value;

/// Two tasks of 400 s on one spot type, whose VMs have booted at 60 s; each checkpoint stands
/// still for 10 s. Some 20 seconds of real time.
const EXPERIMENT: &str = r#"name = "checkpointing"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[[interruption]]
model = "schedule"
acts = [{ at = "280s", action = "ACTION", type = "c3.large" }]
[workload]
kind = "bag"
deadline = "20m"
[[workload.task]]
name = "small"
count = 2
memory = "10 MB"
runtime = { "c3.large" = "400s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
ON_NOTICE
[checkpoint]
fixed = "10s"
per-megabyte = "0s"
SCHEME
[live]
speedup = 30
share = 0.1
"#;

/// By how much CRIU may delay a checkpoint, in emulated seconds: a third of a real second for each task.
const LATE: f64 = 30.0;

/// The logs of a virtual and of a live run with these settings. All tasks of both are verified, and the live one is
/// faithful.
fn both(out: &Path, action: &str, on_notice: &str, scheme: &str) -> [Vec<Value>; 2] {
    let text = EXPERIMENT.replace("ACTION", action);
    let text = text.replace("ON_NOTICE", on_notice).replace("SCHEME", scheme);
    let file = out.join("experiment.toml");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    [None, Some("--live")].map(|live| {
        let out = out.join(live.map_or("virtual", |_| "live"));
        let mut args = vec!["run", file, "--out", out.to_str().unwrap()];
        args.extend(live);
        let _ = dormouse_says(&args);
        let summary = summary(&out);
        assert_eq!(summary["tasks"]["completed"], 2, "{summary:#}");
        // Nothing is verified in virtual time.
        let verified = if live.is_some() { 2 } else { 0 };
        assert_eq!(summary["tasks"]["verified"], verified, "{summary:#}");
        assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
        assert!(summary["counts"]["restores"].as_u64().unwrap() > 0, "{summary:#}");
        if live.is_some() {
            is_faithful(&summary);
        }
        checks_and_replays(&out);
        events(&out)
    })
}

/// Each checkpoint of a first attempt: the task, the time in seconds, and the work that it holds, in ppm.
fn kept(events: &[Value]) -> Vec<(u64, f64, u64)> {
    let kept = |event: &&Value| event["report"] == "checkpoint-taken" && event["attempt"] == 1;
    let of = |event: &Value| {
        let at = event["at"].as_u64().unwrap() as f64 / 1e6;
        (event["task"].as_u64().unwrap(), at, event["done"].as_u64().unwrap())
    };
    let mut kept: Vec<_> = events.iter().filter(kept).map(of).collect();
    kept.sort_by_key(|(task, _, done)| (*task, *done));
    kept
}

/// The work with which each second attempt at a task began, in ppm.
fn restarted_from(events: &[Value]) -> Vec<u64> {
    let effects = events.iter().filter_map(|event| event["effects"].as_array()).flatten();
    let again = effects.filter(|it| it["effect"] == "task-sent" && it["attempt"] == 2);
    again.filter_map(|it| it["from"][1].as_u64()).collect()
}

/// Checks that the live checkpoints agree with the virtual ones: as many, of the same work, and none early.
fn agree(of_virtual: &[Value], of_live: &[Value], tolerance_ppm: u64) {
    let (expected, got) = (kept(of_virtual), kept(of_live));
    assert!(!expected.is_empty());
    assert_eq!(expected.len(), got.len(), "{expected:?} {got:?}");
    for ((task, at, done), (live_task, live_at, live_done)) in expected.into_iter().zip(got) {
        assert_eq!(task, live_task);
        assert!((at - 1.0..at + LATE).contains(&live_at), "{task} at {live_at}, not {at}");
        assert!(done.abs_diff(live_done) <= tolerance_ppm, "{task} keeps {live_done}, not {done}");
    }
}

#[test]
fn checkpoints_at_listed_points_are_taken_there_and_restored() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let scheme = "policy = \"points\"\npoints = [0.1, 0.3, 0.9]";
    let [of_virtual, of_live] = both(folder.path(), "hibernate", "", scheme);
    // At 40 s and at 120 s of the work: 110 s and 200 s.
    let in_virtual: Vec<_> = kept(&of_virtual).iter().map(|(_, at, done)| (*at, *done)).collect();
    assert_eq!(in_virtual, [(110.0, 100_000), (200.0, 300_000)].repeat(2));
    agree(&of_virtual, &of_live, 0);
    assert_eq!(restarted_from(&of_live), [300_000; 2]);
    nothing_is_left_but(&before);
}

#[test]
fn checkpoints_every_so_often_are_asked_for_in_time() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let scheme = "policy = \"every\"\nperiod = \"150s\"";
    let [of_virtual, of_live] = both(folder.path(), "hibernate", "", scheme);
    let in_virtual: Vec<_> = kept(&of_virtual).iter().map(|(_, at, done)| (*at, *done)).collect();
    assert_eq!(in_virtual, [(220.0, 375_000); 2]);
    // What a task has done when it is asked hangs on when it began: 1 % of its work is 4 s.
    agree(&of_virtual, &of_live, 10_000);
    assert!(restarted_from(&of_live).iter().all(|from| *from > 360_000));
    nothing_is_left_but(&before);
}

#[test]
fn tasks_of_a_vm_with_notice_run_on_and_are_checkpointed_before_its_end() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let on_notice = "on-notice = \"checkpoint\"";
    let [of_virtual, of_live] = both(folder.path(), "preempt", on_notice, "policy = \"none\"");
    // Notice at 280 s, the end at 400 s: asked for at 380 s, after 320 s of 400 s of the work.
    let in_virtual: Vec<_> = kept(&of_virtual).iter().map(|(_, at, done)| (*at, *done)).collect();
    assert_eq!(in_virtual, [(390.0, 800_000); 2]);
    agree(&of_virtual, &of_live, 10_000);
    assert_eq!(restarted_from(&of_virtual), [800_000; 2]);
    assert!(restarted_from(&of_live).iter().all(|from| *from > 780_000));
    nothing_is_left_but(&before);
}

#[test]
fn the_dynamic_program_sees_checkpoints_that_are_shorter_than_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let law = "interruption=[{model=\"lifetime\",bathtub={a=0.4137,b=\"45m\",tau1=\"101.25s\",\
               tau2=\"85.5s\"}}]";
    let run = |step: &str| -> Value {
        let checkpoint = format!("checkpoint={{policy=\"dp\"{step}}}");
        let sets = ["--set", law, "--set", "cloud.preemption-notice=\"0s\"", "--set", &checkpoint];
        let out = folder.path().to_str().unwrap();
        let args = [&["run", "j60", "--json", "--force", "--out", out], &sets[..]].concat();
        serde_json::from_str(&dormouse_says(&args)).unwrap()
    };
    // A checkpoint takes 13 s: rounded up to a minute none is worth it for tasks of some minutes.
    let checkpoints = |of: &Value| of["counts"]["checkpoints"].as_u64().unwrap();
    let (finer, minutes) = (run(""), run(",step=\"1m\""));
    assert!(checkpoints(&finer) >= 5, "{finer:#}");
    assert_eq!(checkpoints(&minutes), 0, "{minutes:#}");
}
