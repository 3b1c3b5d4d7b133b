//! Live runs on spot VMs whose price changes: VMs are ended by the scheduler that launched them (ACC), or taken by
//! their provider.
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

/// One per cent of an instance hour, in seconds.
const NEAR: f64 = 36.0;

/// A virtual and a live run of this experiment, both checked and replayed; the live one is verified and faithful.
fn both(out: &Path, experiment: &str, tasks: u64) -> [(Value, Vec<Value>); 2] {
    [None, Some("--live")].map(|live| {
        let out = out.join(live.map_or("virtual", |_| "live"));
        // Whatever runs beside it has most of the host.
        let mut args = vec!["run", experiment, "--set", "live.share=0.2", "--out"];
        args.push(out.to_str().unwrap());
        args.extend(live);
        let _ = dormouse_says(&args);
        let summary = summary(&out);
        assert_eq!(summary["tasks"]["completed"], tasks, "{summary:#}");
        assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
        if live.is_some() {
            assert_eq!(summary["tasks"]["verified"], tasks, "{summary:#}");
            is_faithful(&summary);
        }
        checks_and_replays(&out);
        let events = events(&out);
        (summary, events)
    })
}

/// The times of all effects of this name, in seconds.
fn times(events: &[Value], effect: &str) -> Vec<f64> {
    let of = |event: &Value| {
        let effects = event["effects"].as_array().into_iter().flatten();
        let is_it = effects.filter(|it| it["effect"] == effect);
        is_it.map(|_| event["at"].as_u64().unwrap() as f64 / 1e6).collect::<Vec<_>>()
    };
    events.iter().flat_map(of).collect()
}

/// Checks that there are as many times as expected, each within one per cent of an hour.
fn near(got: &[f64], expected: &[f64]) {
    let is_near = |(got, expected): (&f64, &f64)| (got - expected).abs() < NEAR;
    assert!(got.len() == expected.len(), "{got:?}, not {expected:?}");
    assert!(got.iter().zip(expected).all(is_near), "{got:?}, not {expected:?}");
}

#[test]
fn a_vm_is_ended_as_its_hour_ends_above_the_bid_and_launched_again() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let [(of_virtual, in_virtual), (of_live, live)] = both(folder.path(), "acc-live", 2);
    // It is charged for from 60 s on; its hour's looks are 9 and 4 minutes before 3,660 s.
    for run in [&in_virtual, &live] {
        near(&times(run, "checkpoint-asked"), &[3_120.0, 3_120.0]);
        near(&times(run, "vm-launched"), &[0.0, 4_800.0, 9_000.0]);
    }
    assert_eq!(times(&in_virtual, "vm-ended"), [3_420.0, 8_220.0, 13_200.0]);
    let ended = times(&live, "vm-ended");
    // The first ends once CRIU is done, at the end of the hour at the latest; the second has none to wait for.
    assert!((3_420.0..=3_660.0).contains(&ended[0]), "{ended:?}");
    near(&ended[1..2], &[8_220.0]);
    assert!((ended[2] - 13_200.0).abs() < 132.0, "one per cent: {ended:?}");
    assert_eq!(
        of_virtual["cost_usd"], of_live["cost_usd"],
        "each hour at the price at its beginning"
    );
    for summary in [&of_virtual, &of_live] {
        let counts = &summary["counts"];
        assert_eq!((&counts["above_bid"], &counts["unkept"]), (&2.into(), &1.into()), "{counts}");
        assert_eq!((&counts["checkpoints"], &counts["restores"]), (&2.into(), &3.into()));
    }
    let told = |what: &str| {
        let out = folder.path().join("live");
        dormouse_says(&["explain", out.to_str().unwrap(), what])
    };
    for (vm, words) in [
        ("vm0", "its hour ends and it costs $0.06/h, more than the bid of $0.05/h"),
        ("vm1", "launched, because the spot price of small became $0.04/h"),
        ("vm1", "more than the bid of $0.05/h, without a checkpoint of its task"),
    ] {
        assert!(told(vm).contains(words), "no '{words}' in {}", told(vm));
    }
    nothing_is_left_but(&before);
}

/// Experiment in which the spot price passes the bid at 20 minutes, the provider takes the VM 2
/// minutes later, and it is launched again at 30 minutes.
const OUTBID: &str = r#"name = "outbid"
[cloud]
boot = "1m"
tariff = "hour"
prices = { small = [["0s", 0.03], ["20m", 0.06], ["30m", 0.04]] }
[[cloud.type]]
name = "small"
vcpus = 2
memory = "1 GiB"
spot = 0.03
limits = { spot = 1 }
[workload]
kind = "bag"
deadline = "6h"
[[workload.task]]
memory = "10 MB"
runtime = "40m"
[checkpoint]
fixed = "30s"
policy = "none"
[scheduler]
name = "fifo"
fleet = [{ type = "small", market = "spot", bid = 0.05 }]
[live]
speedup = 240
"#;

#[test]
fn a_vm_whose_price_passes_its_bid_is_taken() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let file = folder.path().join("outbid.toml");
    fs::write(&file, OUTBID).unwrap();
    let [(of_virtual, in_virtual), (of_live, live)] =
        both(folder.path(), file.to_str().unwrap(), 1);
    for run in [&in_virtual, &live] {
        near(&times(run, "outbid"), &[1_200.0]);
        near(&times(run, "vm-launched"), &[0.0, 1_800.0]);
        near(&times(run, "vm-ended")[..1], &[1_320.0]);
    }
    // Its worker has destroyed it before the next is launched, and its task went on from what was kept.
    let place = |what: &str, vm: u64| {
        let is_it = |event: &Value| event["report"] == what && event["vm"] == vm;
        live.iter().position(is_it).unwrap()
    };
    assert!(place("vm-destroyed", 0) < place("vm-created", 1));
    let (counts, of_virtual_counts) = (&of_live["counts"], &of_virtual["counts"]);
    assert_eq!((&counts["preemptions"], &counts["restores"]), (&1.into(), &1.into()), "{counts}");
    assert_eq!(counts["launches_refused"], 0, "{counts}");
    assert_eq!(of_virtual_counts["preemptions"], 1, "{of_virtual_counts}");
    // The provider ended the first in its first hour, for nothing.
    assert_eq!((&of_virtual["cost_usd"], &of_live["cost_usd"]), (&0.04.into(), &0.04.into()));
    nothing_is_left_but(&before);
}
