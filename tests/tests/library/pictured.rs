//! The picture of a run that its live page draws, compared with the run's record.

use std::collections::BTreeMap;

use dormouse_analysis::{AttemptEnd, RunRecord};
use dormouse_experiment::Experiment;
use dormouse_model::Step;
use dormouse_units::Speedup;
use dormouse_watch::picture::RunPicture;
use serde_json::Value;

use super::runs::{played, record_of, with};

fn changes(experiment: &Experiment, steps: &[Step]) -> Vec<Value> {
    let mut picture = RunPicture::new(experiment.whole_setup(), experiment.tenants(), Speedup::ONE);
    let mut record =
        RunRecord::shared(&experiment.whole_setup(), experiment.tenants()).forgetting();
    for step in steps {
        record.see(step);
        picture.see(&record, step);
    }
    assert!(picture.is_over());
    let (all, next) = picture.changes().batch(0, usize::MAX);
    assert_eq!(next, picture.changes().len());
    // In whatever pieces they are taken, they are the same.
    let (mut pieces, mut from) = (Vec::new(), 0);
    while from < next {
        let (piece, until) = picture.changes().batch(from, 37);
        pieces.extend(serde_json::from_str::<Vec<Value>>(&piece).unwrap());
        from = until;
    }
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    assert_eq!(all, pieces);
    all
}

fn named<'a>(changes: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    changes.iter().filter(move |change| change[0] == name)
}

#[test]
fn a_picture_has_what_the_record_of_a_bag_has() {
    for (name, set) in [
        ("j60-sc2", &[][..]),
        ("j100-sc4", &[]),
        ("ed200-sc5", &["interruption.0.scope=vm"]),
        ("j60-sc2", &["scheduler.name=\"hads\""]),
        ("j60-sc2", &["cloud.boot=\"30s\"", "scheduler.name=\"ils-on-demand\""]),
    ] {
        let experiment = with(name, set).unwrap();
        let (steps, _) = played(&experiment);
        let record = record_of(&experiment, &steps);
        let changes = changes(&experiment, &steps);
        let what = format!("{name} {set:?}");
        assert!(changes.iter().is_sorted_by(|a, b| a[1].as_f64() <= b[1].as_f64()), "{what}");

        let attempts = || record.tasks.iter().flat_map(|task| &task.attempts);
        assert_eq!(named(&changes, "start").count(), attempts().count(), "{what}");
        let ended = |end: fn(&AttemptEnd) -> bool| {
            attempts().filter(|it| it.ended.as_ref().is_some_and(|(_, how)| end(how))).count()
        };
        let stopped = |how: &str| named(&changes, "stop").filter(|it| it[4] == how).count();
        assert_eq!(stopped("done"), ended(|end| *end == AttemptEnd::Finished), "{what}");
        assert_eq!(stopped("dropped"), ended(|end| *end == AttemptEnd::Dropped), "{what}");
        assert_eq!(
            stopped("stopped"),
            ended(|end| matches!(end, AttemptEnd::Stopped(_))),
            "{what}"
        );
        assert_eq!(stopped("vm-gone"), ended(|end| matches!(end, AttemptEnd::VmGone(_))), "{what}");
        let checkpoints = attempts().map(|it| it.checkpoints.len()).sum::<usize>();
        assert_eq!(named(&changes, "checkpoint").count(), checkpoints, "{what}");

        let hibernated = named(&changes, "vm-state").filter(|it| it[3] == "hibernated").count();
        assert_eq!(hibernated as u32, record.counts.hibernations, "{what}");
        assert_eq!(named(&changes, "vm").count(), record.vms.len(), "{what}");
        assert_eq!(named(&changes, "vm-end").count(), record.vms.len(), "{what}");
        let hit = record.interruptions.iter().filter(|act| !act.vms.is_empty()).count();
        assert_eq!(named(&changes, "act").count(), hit, "{what}");

        let last = named(&changes, "sample").last().unwrap();
        let (done, cost) = (last[4].as_u64().unwrap(), last[7].as_f64().unwrap());
        assert_eq!(done as usize, record.finished(), "{what}");
        assert!((cost - record.cost().as_usd()).abs() < 1e-9, "{what}: {cost}");
        assert_eq!((last[2].as_u64(), last[8].as_f64()), (Some(0), Some(0.0)), "{what}");
    }
}

/// The credits of a burstable VM are drawn from its launch to its end, as in the record.
#[test]
fn a_picture_has_the_credits_of_a_vm_over_its_whole_life() {
    for (name, set) in [
        ("j60-sc2", &[][..]),
        ("ed200-sc5", &[]),
        ("j60-sc2", &["cloud.boot=\"30s\"", "interruption.0.scope=vm"]),
    ] {
        let experiment = with(name, set).unwrap();
        let (steps, _) = played(&experiment);
        let record = record_of(&experiment, &steps);
        let changes = changes(&experiment, &steps);
        let mut burstable = 0;
        for vm in record.vms.values() {
            let said = named(&changes, "credits").filter(|it| it[2] == vm.id.get());
            let said: Vec<_> =
                said.map(|it| (it[1].as_f64().unwrap(), it[3].as_f64().unwrap())).collect();
            let points = record.credits(vm.id, &experiment.whole_setup().catalogue);
            let points: Vec<_> =
                points.iter().map(|(at, is)| (at.as_secs_f64(), is.as_f64())).collect();
            burstable += usize::from(!points.is_empty());
            let what = format!("{name} {set:?} {}: {said:?}, and {points:?}", vm.id);
            assert_eq!(said.is_empty(), points.is_empty(), "{what}");
            let near =
                |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-5 && (a.1 - b.1).abs() < 1e-3;
            for point in points {
                assert!(said.iter().any(|it| near(*it, point)), "{point:?} of {what}");
            }
        }
        assert!(burstable > 0, "{name} {set:?}");
    }
}

/// No two tasks are drawn on the same vCPU and tier of a VM at once.
#[test]
fn no_two_tasks_are_drawn_on_one_another() {
    for name in ["j60-sc2", "j100-sc4", "batch-small", "shared-small", "provider-j60"] {
        let experiment = with(name, &[]).unwrap();
        let changes = changes(&experiment, &played(&experiment).0);
        let mut there: BTreeMap<(u64, u64, String), u64> = BTreeMap::new();
        let mut starts = 0;
        for change in &changes {
            let number = |place: usize| change[place].as_u64().unwrap();
            match change[0].as_str().unwrap() {
                "start" => {
                    starts += 1;
                    for lane in change[5].as_array().unwrap() {
                        let place = (number(4), lane.as_u64().unwrap(), change[6].to_string());
                        let other = there.insert(place, number(2));
                        assert_eq!(other, None, "{name}: {change}");
                    }
                }
                "stop" => there.retain(|_, task| *task != number(2)),
                _ => {}
            }
        }
        assert!(starts > 0 && there.is_empty(), "{name}: {there:?}");
    }
}
