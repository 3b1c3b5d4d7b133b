//! The twin of a run of a bag of tasks.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;

use dormouse_engine::drive::{Modelled, play};
use dormouse_engine::{Event, Run, Setup, Step, Work};
use dormouse_policies::StartReason;
use dormouse_units::{Span, TaskId, Time, TypeName};

use super::again::decided_again;
use super::given::Given;
use super::value::relative;
use super::words::moments;
use super::{
    Both, Count, Divergence, Side, Spread, Standing, TaskRow, Twin, TwinError, VmRow, VmSide,
};
use crate::output::{Header, Mode, RunLog, span_of};
use crate::virtual_run::limit;
use dormouse_tell::{Record, TaskHistory, VmHistory};

/// Why a run ended of which the log says no end.
const CUT: &str = "its log ends here";

/// Plays the run of this log, which is in this folder, again and compares the two.
pub(super) fn compared(log: RunLog, dir: &Path) -> Result<Twin, TwinError> {
    let RunLog { header, steps: Some(mut steps), .. } = log else {
        return Err(TwinError::NoSteps(dir.to_owned()));
    };
    let mut given = Given::of(&steps);
    if !given.began() {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let experiment = &header.experiment;
    if experiment.jobs.is_some() {
        return Err(TwinError::Shared(dir.to_owned()));
    }
    let scheduler = || {
        experiment
            .scheduler()
            .map_err(|source| TwinError::Scheduler { path: dir.to_owned(), source })
    };
    let setup = Setup { interruptions: given.interruptions(), ..experiment.setup.clone() };
    let other_version = |step| {
        let (path, made_by) = (dir.to_owned(), header.dormouse.clone());
        TwinError::OtherVersion { path, step, made_by }
    };
    let run = |setup| Ok::<_, TwinError>(Run::of_tenants(setup, experiment.policies(scheduler()?)));
    let again = run(setup.clone())?;
    let mut again = decided_again(again, &steps).map_err(other_version)?;
    // A log that says no end is that of a run that was killed: its twin ends where it does.
    if again.over().is_none() {
        let last = steps.last().map_or(Time::ZERO, |step| step.at);
        let end = Event::Cancel { why: CUT.to_owned() };
        given.outside.push((last, end.clone()));
        steps.push(again.handle(last, end).0);
    }
    let mut played = Vec::new();
    let mut run = run(setup)?;
    let Given { outside, acts } = given;
    let outside = outside.into_iter().map(Ok::<_, Infallible>);
    let see = |step: &Step| {
        played.push(step.clone());
        Ok(())
    };
    // A twin that ends with tasks left is a result: its last step says why.
    let _ = play(&mut run, &mut Modelled::default(), outside, limit(experiment), see);
    let steps = Both { live: steps, twin: played };
    Ok(Twin { interruptions: acts.len(), ..side_by_side(&header, &steps) })
}

fn side_by_side(header: &Header, steps: &Both<Vec<Step>>) -> Twin {
    let experiment = &header.experiment;
    let bag = &experiment.setup.bag.tasks;
    let seen = |mut record: Record, steps: &[Step]| {
        steps.iter().for_each(|step| record.see(step));
        record
    };
    let live = seen(header.record(), &steps.live);
    let twin = seen(Record::new(&experiment.setup), &steps.twin);
    let makespan = |of: &Record| of.makespan().map(|end| end.since(Time::ZERO));
    let tasks: Vec<_> = (0..)
        .zip(bag.iter())
        .zip(live.tasks.iter().zip(&twin.tasks))
        .map(|((number, task), (one, other))| {
            let id = TaskId::new(number);
            let fates = Both { live: Fate::of(id, one, &live), twin: Fate::of(id, other, &twin) };
            row(u64::from(number), task.name.clone(), fates)
        })
        .collect();
    let undisturbed = tasks.iter().filter(|row| row.standing == Standing::Undisturbed);
    Twin {
        work: Work::Bag,
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler_name().to_owned(),
        seed: experiment.setup.seed,
        mode: header.mode,
        speedup: (header.mode == Mode::Live).then_some(experiment.live.speedup),
        interruptions: 0,
        migration: None,
        makespan: Both { live: makespan(&live), twin: makespan(&twin) },
        cost: Some(Both { live: live.cost(), twin: twin.cost() }),
        ended_early: Both { live: live.cancelled.clone(), twin: twin.cancelled.clone() },
        undisturbed: Spread::of(undisturbed.filter_map(|row| row.difference)),
        background: None,
        tasks,
        vms: vms(&live, &twin),
        counts: counts(&live, &twin),
        divergence: Divergence::of(&moments(&steps.live), &moments(&steps.twin)),
    }
}

/// What became of a task, as far as its standing depends on it.
struct Fate {
    side: Side,
    kind: Option<TypeName>,
    migrated: bool,
    restored: bool,
    lost: Span,
}

impl Fate {
    fn of(id: TaskId, task: &TaskHistory, record: &Record) -> Self {
        let vm = task.last().and_then(|a| record.vms.get(&a.vm));
        let lost = task.attempts.iter().filter_map(|a| record.vms.get(&a.vm).map(|vm| a.lost(vm)));
        Self {
            side: Side {
                place: vm.map(|vm| format!("{} {}", vm.id, vm.kind)).unwrap_or_default(),
                attempts: task.attempts.len(),
                started: task.attempts.iter().find_map(|a| a.started),
                finished: task.finished,
                measured: span_of(record, id),
            },
            kind: vm.map(|vm| vm.kind.clone()),
            migrated: task.attempts.iter().any(|a| a.reason == StartReason::Migrated),
            restored: task.attempts.iter().any(|a| a.from.is_some()),
            lost: lost.sum(),
        }
    }

    /// What disturbed it by itself.
    fn disturbed(&self) -> Option<String> {
        let Side { attempts, finished, started, .. } = &self.side;
        Some(match attempts {
            0 => "never started".to_owned(),
            1 if self.migrated => "migrated".to_owned(),
            1 if self.restored => "restored".to_owned(),
            1 if self.lost > Span::ZERO => format!("lost {:.1} s", self.lost.as_secs_f64()),
            1 if finished.is_none() || started.is_none() => "not finished".to_owned(),
            1 => return None,
            n => format!("{n} attempts"),
        })
    }
}

fn row(number: u64, name: String, fates: Both<Fate>) -> TaskRow {
    let Both { live, twin } = fates;
    let standing = match (live.disturbed(), twin.disturbed()) {
        (Some(one), Some(other)) if one == other => Standing::Disturbed(format!("{one} in both")),
        (Some(what), None) => Standing::Disturbed(format!("{what} live")),
        (None, Some(what)) => Standing::Disturbed(format!("{what} in the twin")),
        (Some(one), Some(other)) => Standing::Disturbed(format!("{one} live, {other} in the twin")),
        (None, None) if live.kind != twin.kind => {
            Standing::Disturbed("on another type of VM".to_owned())
        }
        (None, None) => Standing::Undisturbed,
    };
    let took = |of: &Side| of.took().map(Span::as_secs_f64);
    let difference =
        took(&live.side).zip(took(&twin.side)).and_then(|(live, twin)| relative(live, twin));
    let sides = Both { live: live.side, twin: twin.side };
    TaskRow { number, name, sides, difference, standing }
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
