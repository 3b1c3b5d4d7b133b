//! The twin of a run of a bag of tasks.

use std::collections::BTreeSet;
use std::convert::Infallible;

use dormouse_engine::Run;
use dormouse_engine::drive::{ModelledMachines, play_run};
use dormouse_model::{Event, Setup, StartReason, Step, TenantWork};
use dormouse_units::{Span, TaskId, Time, TypeName};

use super::{
    ComparedRun, DecisionMoment, DurationSpread, EventCount, LiveAndTwin, TaskFate, TaskStanding,
    TwinComparison, TwinDivergence, TwinInputs, TwinTask, TwinVm, VmFate, decided_again,
};
use crate::fidelity::span_of;
use crate::{RunRecord, TaskHistory, VmHistory, words};

/// Reason that is given for the end of a run whose log is incomplete.
const CUT: &str = "its log ends here";

/// Runs the twin of a run with the inputs `given`, and compares the twin with the run. `empty` is
/// an empty record for the run; `runs` are two runs of this setup, whose interruptions are those of
/// `given`. The twin ends at `limit` at the latest.
///
/// # Errors
///
/// The number of the first step in which this program decides differently.
pub fn twin_of_bag(
    (about, setup): (ComparedRun, &Setup),
    empty: RunRecord,
    (mut given, mut steps): (TwinInputs, Vec<Step>),
    [again, mut run]: [Run; 2],
    limit: Time,
) -> Result<TwinComparison, u64> {
    let mut again = decided_again(again, &steps)?;
    // A log without an end is that of a run that was killed: its twin ends where the log does.
    if again.over_at().is_none() {
        let last = steps.last().map_or(Time::ZERO, |step| step.at);
        let end = Event::Cancel { why: CUT.to_owned() };
        given.outside.push((last, end.clone()));
        steps.push(again.handle_event(last, end).0);
    }
    let mut played = Vec::new();
    let TwinInputs { outside, acts } = given;
    let outside = outside.into_iter().map(Ok::<_, Infallible>);
    let see = |step: &Step| {
        played.push(step.clone());
        Ok(())
    };
    // A twin that ends with tasks left is a result: its last step has the reason.
    let _ = play_run(&mut run, &mut ModelledMachines::default(), outside, limit, see);
    let steps = LiveAndTwin { live: steps, twin: played };
    Ok(side_by_side(about, setup, empty, &steps, acts.len()))
}

fn side_by_side(
    about: ComparedRun,
    setup: &Setup,
    empty: RunRecord,
    steps: &LiveAndTwin<Vec<Step>>,
    interruptions: usize,
) -> TwinComparison {
    let seen = |mut record: RunRecord, steps: &[Step]| {
        steps.iter().for_each(|step| record.see(step));
        record
    };
    let live = seen(empty, &steps.live);
    let twin = seen(RunRecord::new(setup), &steps.twin);
    let makespan = |of: &RunRecord| of.makespan().map(|end| end.since(Time::ZERO));
    let tasks = (0..).zip(setup.bag.tasks.iter()).zip(live.tasks.iter().zip(&twin.tasks));
    let tasks: Vec<_> = tasks
        .map(|((number, task), (one, other))| {
            let id = TaskId::new(number);
            let sides =
                LiveAndTwin { live: task_fate(id, one, &live), twin: task_fate(id, other, &twin) };
            let fates = LiveAndTwin {
                live: vm_type_or_disturbance(one, &live),
                twin: vm_type_or_disturbance(other, &twin),
            };
            let standing = match one.is_own_program() {
                true => TaskStanding::Disturbed("a program of the user's own live".to_owned()),
                false => TaskStanding::compare(
                    fates,
                    |_| TaskStanding::Undisturbed,
                    "on another type of VM",
                ),
            };
            TwinTask::new(number.into(), task.name.clone(), sides, standing)
        })
        .collect();
    TwinComparison {
        work: TenantWork::Bag,
        about,
        interruptions,
        migration: None,
        has_own_programs: live.tasks.iter().any(TaskHistory::is_own_program),
        makespan: LiveAndTwin { live: makespan(&live), twin: makespan(&twin) },
        cost: Some(LiveAndTwin { live: live.cost(), twin: twin.cost() }),
        ended_early: LiveAndTwin { live: live.cancelled.clone(), twin: twin.cancelled.clone() },
        undisturbed: DurationSpread::of_those(&tasks, &TaskStanding::Undisturbed),
        background: None,
        tasks,
        vms: compare_vms(&live, &twin),
        counts: compare_counts(&live, &twin),
        divergence: TwinDivergence::first(&moments_of(&steps.live), &moments_of(&steps.twin)),
    }
}

/// All notices and decisions in these steps, in order and in words.
fn moments_of(steps: &[Step]) -> Vec<DecisionMoment> {
    let moment = |step: &Step| DecisionMoment {
        at: step.at,
        heard: match step.notices.as_slice() {
            [] => vec![words::event(&step.event).to_owned()],
            notices => notices.iter().map(words::heard).collect(),
        },
        decided: step.decisions.iter().filter_map(words::decided).collect(),
    };
    steps.iter().map(moment).collect()
}

fn task_fate(id: TaskId, task: &TaskHistory, record: &RunRecord) -> TaskFate {
    let vm = task.last().and_then(|a| record.vms.get(&a.vm));
    TaskFate {
        place: vm.map(|vm| format!("{} {}", vm.id, vm.kind)).unwrap_or_default(),
        attempts: task.attempts.len(),
        started: task.attempts.iter().find_map(|a| a.started),
        finished: task.finished,
        measured: span_of(record, id),
    }
}

/// The type of the VM that a task had (`None`: it never had one), or else the reason for which it counts as disturbed.
fn vm_type_or_disturbance(
    task: &TaskHistory,
    record: &RunRecord,
) -> Result<Option<TypeName>, String> {
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

fn compare_vms(live: &RunRecord, twin: &RunRecord) -> Vec<TwinVm> {
    let side = |vm: &VmHistory| VmFate {
        kind: vm.kind.clone(),
        market: vm.market,
        launched: vm.launched,
        ended: vm.ended.map(|(at, ..)| at),
        hibernations: vm.hibernations.len(),
        cost: vm.cost(),
    };
    let ids: BTreeSet<_> = live.vms.keys().chain(twin.vms.keys()).copied().collect();
    let row = |vm| TwinVm {
        vm,
        sides: LiveAndTwin { live: live.vms.get(&vm).map(side), twin: twin.vms.get(&vm).map(side) },
    };
    ids.into_iter().map(row).collect()
}

/// All counts of `summary.json`, in the live run and in the twin.
fn compare_counts(live: &RunRecord, twin: &RunRecord) -> Vec<EventCount> {
    let of = |record: &RunRecord| match serde_json::to_value(record.counts) {
        Ok(serde_json::Value::Object(counts)) => counts,
        // Never happens: counts are numbers with names.
        _ => serde_json::Map::new(),
    };
    let twin = of(twin);
    let n = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
    let count = |(name, value): (String, serde_json::Value)| {
        let sides =
            LiveAndTwin { live: n(&value), twin: twin.get(&name).map(n).unwrap_or_default() };
        EventCount { name, sides }
    };
    of(live).into_iter().map(count).collect()
}
