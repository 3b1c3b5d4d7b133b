//! Live runs whose VMs are preempted at the ends of random lifetimes. Tasks are checkpointed by the dynamic program,
//! under the batch service; the live run agrees with the virtual one.
//!
//! They need root, control groups and CRIU (`scripts/get-criu`). Elsewhere they are skipped and say so;
//! with `CI=true` that is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_tests::{
    checks_and_replays, dormouse_says, events, is_faithful, live_turn, nothing_is_left_but,
    refused, run_in, summary, text, timed_live_turn, traces,
};
use serde_json::Value;

/// A seed under which five VMs are preempted young, none sooner than 26 s after a checkpoint on it.
const SEED: &str = "25";

/// Settings for six of the ten tasks: 25 seconds of real time.
const TASKS: &str =
    r#"workload.task=[{name="work",count=6,memory="10 MB",runtime={"c3.large"="6m"}}]"#;

/// By how much CRIU and the transfer may delay a checkpoint, in emulated seconds: 0.3 real seconds. Under this seed no
/// VM is preempted so soon after a checkpoint.
const LATE: f64 = 8.9;

/// Work of a task in seconds; the next constant is the cost of a checkpoint, in seconds.
const WORK: f64 = 360.0;
const COST: f64 = 5.0;

/// Makes a run, live with these options if there are any; returns its summary and its log.
fn run(out: &Path, live: &[&str]) -> (Value, Vec<Value>) {
    let out_dir = out.to_str().unwrap();
    let args = ["run", "bathtub-live", "--seed", SEED, "--set", TASKS, "--out", out_dir];
    let _ = dormouse_says(&[&args[..], live].concat());
    checks_and_replays(out);
    (summary(out), events(out))
}

fn seconds(event: &Value) -> f64 {
    event["at"].as_u64().unwrap() as f64 / 1e6
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}

/// Each effect of this name, with its time in seconds.
fn effects<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = (f64, &'a Value)> {
    let of = move |event: &'a Value| {
        let all = event["effects"].as_array().into_iter().flatten();
        all.filter(move |it| it["effect"] == name).map(move |it| (seconds(event), it))
    };
    events.iter().flat_map(of)
}

/// The ages at which VMs were preempted, in seconds, by VM.
fn ages(events: &[Value]) -> BTreeMap<u64, f64> {
    let ready: BTreeMap<_, _> =
        effects(events, "vm-ready").map(|(at, it)| (number(it, "vm"), at)).collect();
    let preempted = effects(events, "vm-ended").filter(|(_, it)| it["why"] == "preempted");
    preempted.map(|(at, it)| (number(it, "vm"), at - ready[&number(it, "vm")])).collect()
}

/// The time in seconds at which each checkpoint was reported, by task, attempt and part of the work in ppm.
fn kept(events: &[Value]) -> BTreeMap<(u64, u64, u64), f64> {
    let kept = events.iter().filter(|event| event["report"] == "checkpoint-taken");
    let key = |event: &Value| ["task", "attempt", "done"].map(|key| number(event, key)).into();
    kept.map(|event| (key(event), seconds(event))).collect()
}

/// The work that was lost with VMs, in seconds: the time of their attempts that no checkpoint covers. An attempt's
/// time counts from when it is sent.
fn lost(events: &[Value]) -> f64 {
    let key = |of: &Value| (number(of, "task"), number(of, "attempt"));
    let is_end = |event: &&Value| event["report"] == "task-finished";
    let finished: BTreeSet<_> = events.iter().filter(is_end).map(key).collect();
    let (mut lost, kept, from) = (0.0, kept(events), sent(events));
    for (ended, it) in effects(events, "vm-ended").filter(|(_, it)| it["why"] == "preempted") {
        let on = effects(events, "task-sent").filter(|(_, sent)| sent["vm"] == it["vm"]);
        let on = on.map(|(began, it)| (key(it), began));
        for (of, began) in on.filter(|(of, _)| !finished.contains(of)) {
            let marks: Vec<_> =
                kept.keys().filter(|(task, attempt, _)| (*task, *attempt) == of).collect();
            let begun_with = from[&of].unwrap_or(0);
            let last = marks.last().map_or(begun_with, |(.., done)| *done);
            let work = (last - begun_with) as f64 / 1e6 * WORK;
            lost += ended - began - work - marks.len() as f64 * COST;
        }
    }
    lost
}

/// The work with which every attempt began, in ppm, by task and attempt; `None`: from scratch.
fn sent(events: &[Value]) -> BTreeMap<(u64, u64), Option<u64>> {
    let key = |it: &Value| (number(it, "task"), number(it, "attempt"));
    effects(events, "task-sent").map(|(_, it)| (key(it), it["from"][1].as_u64())).collect()
}

#[test]
fn vms_are_preempted_at_their_ages_and_checkpoints_are_kept_where_the_plan_has_them() {
    let Some(_turn) = live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let (of_virtual, expected) = run(&folder.path().join("virtual"), &[]);
    let (of_live, got) = run(&folder.path().join("live"), &["--live"]);
    nothing_is_left_but(&before);

    for summary in [&of_virtual, &of_live] {
        assert_eq!(summary["tasks"]["completed"], 6, "{summary:#}");
        assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
    }
    assert_eq!(of_live["tasks"]["verified"], 6, "{of_live:#}");
    is_faithful(&of_live);

    // In virtual time a VM lives exactly as long as was drawn for it.
    let (drawn, lived) = (ages(&expected), ages(&got));
    assert_eq!(drawn.len(), 5, "{drawn:?}");
    assert!(drawn.keys().eq(lived.keys()), "{drawn:?} {lived:?}");
    for (vm, age) in &drawn {
        let off = (lived[vm] - age).abs();
        assert!(off <= age / 100.0, "vm{vm} lived for {} s, not {age}", lived[vm]);
    }

    let (planned, taken) = (kept(&expected), kept(&got));
    assert!(planned.len() > 7 && planned.keys().eq(taken.keys()), "{planned:?} {taken:?}");
    for (which, at) in &planned {
        let late = taken[which] - at;
        assert!((-1.0..LATE).contains(&late), "{which:?} at {}, not {at}", taken[which]);
    }
    assert_eq!(sent(&expected), sent(&got));

    let [planned, taken] = [&expected, &got].map(|events| lost(events));
    assert!(planned > 300.0 && (planned - taken).abs() <= planned / 100.0, "{planned} {taken}");
    // The summary's counts from when a checkpoint is there: it is less by how late these are.
    let said = [&of_virtual, &of_live].map(|of| of["work_lost_s"].as_f64().unwrap());
    let restores = of_live["counts"]["restores"].as_f64().unwrap();
    assert!((said[0] - planned).abs() < COST * restores, "{said:?} {planned}");
    assert!((0.0..LATE * restores).contains(&(said[0] - said[1])), "{said:?}");
    let ends = [&of_virtual, &of_live].map(|of| of["makespan_s"].as_f64().unwrap());
    assert!((ends[0] - ends[1]).abs() <= ends[0] / 100.0, "{ends:?}");
}

/// Settings of a service whose VMs cost too much for five minutes, and of another tenant with a VM for three hours.
const BESIDE: &str = r#"
name = "beside"
[cloud]
boot = "0s"
default-bid = 0.5
prices.small = [["0s", 0.06], ["5m", 0.03]]
[[cloud.type]]
name = "small"
vcpus = 1
memory = "1 GiB"
spot = 0.03
on-demand = 0.1
[[tenant]]
checkpoint = { policy = "none" }
[tenant.workload]
kind = "bag"
deadline = "10h"
task = [{ runtime = "5m" }]
[tenant.scheduler]
name = "batch-service"
vms = 1
[[tenant]]
[tenant.workload]
kind = "requests"
request = [{ at = "0s", type = "small", market = "on-demand", duration = "3h" }]
"#;

#[test]
fn the_service_tries_again_beside_others_as_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beside.toml");
    std::fs::write(&file, BESIDE).unwrap();
    let out = folder.path().join("out");
    let [file, to] = [&file, &out].map(|path| path.to_str().unwrap());
    let _ = dormouse_says(&["run", file, "--out", to]);
    checks_and_replays(&out);
    let finished = events(&out).into_iter().find(|event| event["report"] == "task-finished");
    let at = seconds(&finished.expect("its task is done"));
    assert!((600.0..1_500.0).contains(&at), "done at {at} s");
}

#[test]
fn a_live_service_reuses_its_vms_as_in_virtual_time() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let run = |live: &[&str]| {
        let out = folder.path().join(if live.is_empty() { "virtual" } else { "live" });
        // Half as fast again as the file has it: 28 seconds.
        let args = ["run", "bathtub-service-live", "--set", "live.speedup=30", "--out"];
        let args = [&args[..], &[out.to_str().unwrap()]].concat();
        let _ = dormouse_says(&[&args[..], live].concat());
        checks_and_replays(&out);
        let events = events(&out);
        let is_reused = |it: &Value| it["reason"].get("reused").is_some();
        let reused = effects(&events, "task-sent").filter(|(_, it)| is_reused(it)).count();
        // The second bag finds a spare that outlived the first, and waits for no boot.
        let mut later = effects(&events, "task-sent").filter(|(_, it)| number(it, "task") >= 4);
        let (at, first) = later.next().unwrap();
        assert!((480.0..485.0).contains(&at) && is_reused(first), "{at} {first}");
        (summary(&out), reused, ages(&events))
    };
    let [(in_virtual, reused, taken), (live, reused_live, taken_live)] =
        [run(&[]), run(&["--live"])];
    assert_eq!((&live["tasks"]["completed"], &live["tasks"]["verified"]), (&8.into(), &8.into()));
    let counts =
        |of: &Value| (of["counts"]["preemptions"].clone(), of["counts"]["vms_launched"].clone());
    assert_eq!(counts(&live), counts(&in_virtual), "{live:#}");
    assert!(reused > 0 && reused == reused_live, "{reused} {reused_live}");
    let near = |(vm, age): (&u64, &f64)| (taken_live[vm] - age).abs() < 0.01 * age + 1.0;
    assert!(taken.len() == taken_live.len() && taken.iter().all(near), "{taken:?} {taken_live:?}");
    nothing_is_left_but(&before);
}

/// Jobs of two hours on VMs that live for less than that, or hardly longer: the run says that its VMs always fail.
#[test]
fn vms_that_always_fail_are_said_to_do_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = |to: &str| {
        let text = format!(
            "name = \"short\"\n[cloud]\ncatalogue = \"gce-2019\"\n[workload]\nkind = \"bag\"\ndeadline = \"10h\"\n\
             task = [{{ count = 4, runtime = \"2h\" }}]\n[scheduler]\nname = \"batch-service\"\n\
             type = \"n1-highcpu-2\"\nmax-preemptions = 2\n[checkpoint]\npolicy = \"none\"\n\
             [[interruption]]\nmodel = \"lifetime\"\nuniform = {{ from = \"0s\", to = \"{to}\" }}\n"
        );
        std::fs::write(folder.path().join("short.toml"), text).unwrap();
    };
    file("1h");
    let words = ["short.toml:", "takes 2h, longer than any spot n1-highcpu-2 lives"];
    refused(folder.path(), &["run", "short.toml"], 2, &words);
    file("2h5m");
    let output = run_in(folder.path(), &["run", "short.toml", "--out", "out"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in ["tasks are left", "what is left was given up", "give it VMs that live longer"] {
        assert!(said.contains(words), "no '{words}' in {said}");
    }
    // On demand nobody takes them away.
    file("1h");
    let args = ["run", "short.toml", "--set", "scheduler.market=\"on-demand\"", "--out", "there"];
    assert!(run_in(folder.path(), &args).status.success());
}
