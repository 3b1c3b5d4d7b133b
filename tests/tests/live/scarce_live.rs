//! Live runs with settings from files: jobs that follow others, types that become scarce, and credits that are spent
//! before they are earned.
//!
//! They need what the other live tests need (`whole_runs.rs`).

use std::fs;

use dormouse_tests::{
    UnderWay, checks_and_replays, dormouse_says, events, is_faithful, nothing_is_left_but, summary,
    text, timed_live_turn, traces, wait_for_report,
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Four jobs on four processors, submitted at dates: the second follows the first and the fourth the
/// second. At sixty times real time the whole takes six seconds.
const FOLLOWING: &str = "; MaxProcs: 4\n\
    1 1726996147 0 120 2 -1 -1 2 180 -1 1 1 1 -1 1 1 -1 -1\n\
    2 1726996157 0 60 2 -1 -1 2 90 -1 1 1 1 -1 1 1 1 30\n\
    3 1726996207 0 120 2 -1 -1 2 180 -1 1 1 1 -1 1 1 -1 -1\n\
    4 1726996217 0 60 4 -1 -1 4 90 -1 1 1 1 -1 1 1 2 45\n";

/// The instants in seconds at which the events of this kind happened, by task.
fn seconds(log: &[Value], key: &str, kind: &str) -> Vec<(u64, f64)> {
    let of = log.iter().filter(|event| event[key] == kind);
    of.map(|event| (event["task"].as_u64().unwrap(), event["at"].as_f64().unwrap() / 1e6)).collect()
}

#[test]
fn jobs_that_follow_others_come_after_them_and_a_killed_coordinator_forgets_none() {
    let Some(_turn) = timed_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("experiment.toml");
    fs::write(folder.path().join("log.swf"), FOLLOWING).unwrap();
    let text_of = "name = \"following\"\n[workload]\nkind = \"swf\"\nlog = \"log.swf\"\nusage = \"full\"\n\
                   [scheduler]\nname = \"easy\"\n[live]\nspeedup = 60\n";
    fs::write(&file, text_of).unwrap();
    let run = UnderWay::live(&folder.path().join("out"), &file, &[]);
    let out = run.out().to_owned();
    // The second job waits for its time to come.
    wait_for_report(&out, "task-finished", 0);
    let _ = run.told(Signal::SIGKILL);
    // Only a folder in memory waits for the next start, which removes it.
    let in_memory = traces().into_iter().filter(|trace| trace.starts_with("/dev/shm"));
    nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());
    let resumed = UnderWay::resumed(&out).ended();
    assert!(resumed.status.success(), "{}", text(&resumed));
    let of_run = summary(&out);
    assert_eq!(of_run["tasks"]["verified"], 4, "{of_run:#}");
    checks_and_replays(&out);
    let log = events(&out);
    let submitted = seconds(&log, "event", "submitted");
    let ended = seconds(&log, "report", "task-finished");
    assert_eq!(submitted.len(), 4, "{submitted:?}");
    // Jobs are numbered as they come: 1, 3, and those that follow.
    assert!(submitted[0].1 < 1.0 && (59.0..62.0).contains(&submitted[1].1), "{submitted:?}");
    let end_of = |task: u64| ended.iter().find(|(of, _)| *of == task).unwrap().1;
    // To the microsecond of the log, in floats.
    let apart = |n: usize, task: u64| submitted[n].1 - end_of(task) + 1e-6;
    // That of the second was over while nobody was there to submit it.
    assert!(apart(2, submitted[0].0) >= 30.0, "{submitted:?} {ended:?}");
    assert!((45.0..48.0).contains(&apart(3, submitted[2].0)), "{submitted:?} {ended:?}");
    nothing_is_left_but(&before);
}

/// Tasks of 150 s on two spot VMs, of which there is one alone from 90 s to 240 s; and one on a
/// burstable VM in unlimited mode. About fifteen seconds.
const SCARCE: &str = r#"name = "scarce"
[cloud]
boot = "20s"
preemption-notice = "20s"
availability = { plain = [["0s", 2], ["90s", 1], ["240s", 2]] }
[[cloud.type]]
name = "plain"
vcpus = 1
memory = "1 GiB"
spot = 0.03
[[cloud.type]]
name = "bursts"
vcpus = 1
memory = "1 GiB"
on-demand = 0.06
burstable = { baseline = 0.2, credits-per-hour = 12, surplus-price = 0.05 }
[workload]
kind = "bag"
deadline = "45m"
[[workload.task]]
name = "small"
count = 5
memory = "10 MB"
runtime = "150s"
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
fleet = [
  { type = "plain", market = "spot", count = 2 },
  { type = "bursts", market = "on-demand" },
]
[live]
speedup = 30
share = 0.1
"#;

#[test]
fn a_scarce_type_is_taken_back_and_had_again_and_surplus_credits_are_charged() {
    let Some(_turn) = timed_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, live) = (folder.path().join("experiment.toml"), folder.path().join("live"));
    fs::write(&file, SCARCE).unwrap();
    let ended = UnderWay::live(&live, &file, &[]).ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let of_run = summary(&live);
    assert_eq!(of_run["tasks"]["verified"], 5, "{of_run:#}");
    is_faithful(&of_run);
    checks_and_replays(&live);
    let log = events(&live);
    let effects: Vec<&Value> =
        log.iter().filter_map(|event| event["effects"].as_array()).flatten().collect();
    let of = |kind: &str| effects.iter().filter(|it| it["effect"] == kind).collect::<Vec<_>>();
    assert_eq!(of("reclaimed").len(), 1, "{of_run:#}");
    let notices = log.iter().filter_map(|event| event["notices"].as_array()).flatten();
    let refused =
        notices.filter(|it| it["notice"] == "launch-refused" && it["unavailable"] == true);
    assert!(refused.count() > 0);
    // A vCPU spends 60 credits an hour and earns 12: two tasks of 150 s at most cost $.0034.
    let charged = of("surplus-charged");
    assert_eq!(charged.len(), 1, "{charged:?}");
    let dollars = charged[0]["cost"].as_f64().unwrap() / 1e9;
    assert!((0.0012..0.0045).contains(&dollars), "{charged:?}");
    let folder = live.to_str().unwrap();
    let twin: Value = serde_json::from_str(&dormouse_says(&["twin", folder, "--json"])).unwrap();
    let makespan = |side: &str| twin["makespan_s"][side].as_f64().unwrap();
    let apart = (makespan("live") - makespan("twin")).abs() / makespan("twin");
    assert!(apart < 0.02, "{twin}");
    nothing_is_left_but(&before);
}
