//! The twin of a run of a bag of tasks.

use std::collections::BTreeSet;
use std::convert::Infallible;

use dormouse_engine::Run;
use dormouse_engine::drive::{Modelled, play};
use dormouse_model::{Event, Setup, StartReason, Step, Work};
use dormouse_units::{Span, TaskId, Time, TypeName};

use super::{
    About, Both, Count, Divergence, Given, Moment, Side, Spread, Standing, TaskRow, Twin, VmRow,
    VmSide, decided_again,
};
use crate::fidelity::span_of;
use crate::{Record, TaskHistory, VmHistory, words};

/// Why a run ended of which the log says no end.
const CUT: &str = "its log ends here";

/// Plays a run again, with what was given to it, and compares the two. `empty` is its record before
/// anything has happened; `runs` are two of this setup, whose interruptions are those that were given.
/// The twin ends at `limit` if not before.
///
/// # Errors
///
/// The number of the first step that this program decides otherwise.
pub fn twin_of_bag(
    (about, setup): (About, &Setup),
    empty: Record,
    (mut given, mut steps): (Given, Vec<Step>),
    [again, mut run]: [Run; 2],
    limit: Time,
) -> Result<Twin, u64> {
    let mut again = decided_again(again, &steps)?;
    // A log that says no end is that of a run that was killed: its twin ends where it does.
    if again.over().is_none() {
        let last = steps.last().map_or(Time::ZERO, |step| step.at);
        let end = Event::Cancel { why: CUT.to_owned() };
        given.outside.push((last, end.clone()));
        steps.push(again.handle(last, end).0);
    }
    let mut played = Vec::new();
    let Given { outside, acts } = given;
    let outside = outside.into_iter().map(Ok::<_, Infallible>);
    let see = |step: &Step| {
        played.push(step.clone());
        Ok(())
    };
    // A twin that ends with tasks left is a result: its last step says why.
    let _ = play(&mut run, &mut Modelled::default(), outside, limit, see);
    let steps = Both { live: steps, twin: played };
    Ok(side_by_side(about, setup, empty, &steps, acts.len()))
}

fn side_by_side(
    about: About,
    setup: &Setup,
    empty: Record,
    steps: &Both<Vec<Step>>,
    interruptions: usize,
) -> Twin {
    let seen = |mut record: Record, steps: &[Step]| {
        steps.iter().for_each(|step| record.see(step));
        record
    };
    let live = seen(empty, &steps.live);
    let twin = seen(Record::new(setup), &steps.twin);
    let makespan = |of: &Record| of.makespan().map(|end| end.since(Time::ZERO));
    let tasks = (0..).zip(setup.bag.tasks.iter()).zip(live.tasks.iter().zip(&twin.tasks));
    let tasks: Vec<_> = tasks
        .map(|((number, task), (one, other))| {
            let id = TaskId::new(number);
            let sides = Both { live: side(id, one, &live), twin: side(id, other, &twin) };
            let fates = Both { live: fate(one, &live), twin: fate(other, &twin) };
            let standing = match one.is_own_program() {
                true => Standing::Disturbed("a program of the user's own live".to_owned()),
                false => {
                    Standing::compare(fates, |_| Standing::Undisturbed, "on another type of VM")
                }
            };
            TaskRow::new(number.into(), task.name.clone(), sides, standing)
        })
        .collect();
    Twin {
        work: Work::Bag,
        about,
        interruptions,
        migration: None,
        has_own_programs: live.tasks.iter().any(TaskHistory::is_own_program),
        makespan: Both { live: makespan(&live), twin: makespan(&twin) },
        cost: Some(Both { live: live.cost(), twin: twin.cost() }),
        ended_early: Both { live: live.cancelled.clone(), twin: twin.cancelled.clone() },
        undisturbed: Spread::of_those(&tasks, &Standing::Undisturbed),
        background: None,
        tasks,
        vms: vms(&live, &twin),
        counts: counts(&live, &twin),
        divergence: Divergence::first(&moments(&steps.live), &moments(&steps.twin)),
    }
}

/// Everything that was heard or decided, in order.
fn moments(steps: &[Step]) -> Vec<Moment> {
    let moment = |step: &Step| Moment {
        at: step.at,
        heard: match step.notices.as_slice() {
            [] => vec![words::event(&step.event).to_owned()],
            notices => notices.iter().map(words::heard).collect(),
        },
        decided: step.decisions.iter().filter_map(words::decided).collect(),
    };
    steps.iter().map(moment).collect()
}

fn side(id: TaskId, task: &TaskHistory, record: &Record) -> Side {
    let vm = task.last().and_then(|a| record.vms.get(&a.vm));
    Side {
        place: vm.map(|vm| format!("{} {}", vm.id, vm.kind)).unwrap_or_default(),
        attempts: task.attempts.len(),
        started: task.attempts.iter().find_map(|a| a.started),
        finished: task.finished,
        measured: span_of(record, id),
    }
}

/// The type of VM that a task had, or what disturbed it by itself.
fn fate(task: &TaskHistory, record: &Record) -> Result<Option<TypeName>, String> {
    let attempts = &task.attempts;
    let lost: Span =
        attempts.iter().filter_map(|a| record.vms.get(&a.vm).map(|vm| a.lost(vm))).sum();
    Err(match attempts.len() {
        0 => "never started".to_owned(),
        1 if attempts.iter().any(|a| a.reason == StartReason::Migrated) => {
            "its VM was taken before it began".to_owned()
        }
        1 if attempts.iter().any(|a| a.from.is_some()) => "restored".to_owned(),
        1 if lost > Span::ZERO => format!("lost {:.1} s", lost.as_secs_f64()),
        1 if task.finished.is_none() || attempts.iter().all(|a| a.started.is_none()) => {
            "not finished".to_owned()
        }
        1 => {
            let vm = task.last().and_then(|a| record.vms.get(&a.vm));
            return Ok(vm.map(|vm| vm.kind.clone()));
        }
        n => format!("{n} attempts"),
    })
}

fn vms(live: &Record, twin: &Record) -> Vec<VmRow> {
    let side = |vm: &VmHistory| VmSide {
        kind: vm.kind.clone(),
        market: vm.market,
        launched: vm.launched,
        ended: vm.ended.map(|(at, ..)| at),
        hibernations: vm.hibernations.len(),
        cost: vm.cost(),
    };
    let ids: BTreeSet<_> = live.vms.keys().chain(twin.vms.keys()).copied().collect();
    let row = |vm| VmRow {
        vm,
        sides: Both { live: live.vms.get(&vm).map(side), twin: twin.vms.get(&vm).map(side) },
    };
    ids.into_iter().map(row).collect()
}

/// The counts of `summary.json`, whatever they are.
fn counts(live: &Record, twin: &Record) -> Vec<Count> {
    let of = |record: &Record| match serde_json::to_value(record.counts) {
        Ok(serde_json::Value::Object(counts)) => counts,
        // Counts are numbers with names: this can't be.
        _ => serde_json::Map::new(),
    };
    let twin = of(twin);
    let n = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
    let count = |(name, value): (String, serde_json::Value)| {
        let sides = Both { live: n(&value), twin: twin.get(&name).map(n).unwrap_or_default() };
        Count { name, sides }
    };
    of(live).into_iter().map(count).collect()
}
