//! The part of a page's data that stays the same during its run.

use dormouse_analysis::RunMode;
use dormouse_experiment::{Experiment, PlannedFigures};
use dormouse_report::output::LogHeader;
use dormouse_units::Price;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The answer to `/api/run` for a run with this name.
pub(crate) fn answer(header: &LogHeader, run: &str) -> Value {
    let experiment = &header.experiment;
    let setup = experiment.whole_setup();
    let types: BTreeMap<_, _> = setup
        .catalogue
        .types
        .values()
        .map(|kind| {
            let usd = |price: Price| price.as_usd_per_hour();
            let of = json!({
                "vcpus": kind.vcpus, "memory_bytes": kind.memory,
                "burstable": kind.burstable.is_some(), "spot_usd_h": kind.spot.map(usd),
                "ondemand_usd_h": kind.on_demand.map(usd),
            });
            (kind.name.to_string(), of)
        })
        .collect();
    let (has_bag, has_jobs) = (experiment.scheduler.is_some(), experiment.jobs.is_some());
    let noun = match (has_bag, has_jobs) {
        (true, _) => "task",
        (false, true) => "job",
        (false, false) => "request",
    };
    // The number of jobs is unknown before they have come.
    let tasks = (!has_jobs && has_bag).then_some(setup.bag.tasks.len());
    let deadline = setup.bag.deadline.as_secs_f64();
    json!({
        "run": run,
        "experiment": experiment.name,
        "scheduler": experiment.scheduler_name(),
        "seed": setup.seed,
        "mode": if header.mode == RunMode::Live { "live" } else { "virtual" },
        "speedup": header.live_speedup(),
        "share": header.live_speedup().and_then(|_| Some(experiment.live.share?.as_f64())),
        "calendar_unix_s": header.calendar.began,
        "tasks": tasks,
        "task_noun": noun,
        "deadline_s": (has_bag && deadline > 0.0).then_some(deadline),
        "plan": plan_json(experiment),
        "budget_usd": null,
        "types": types,
        "rows": if has_jobs && !has_bag { "processors" } else { "vms" },
    })
}

/// The scheduler's plan, if the scheduler plans all tasks at the beginning; the plan is computed again, since the log
/// has none.
fn plan_json(experiment: &Experiment) -> Value {
    let plan = experiment.plan().ok().flatten();
    let figures = plan.and_then(|plan| experiment.planned_figures(&plan));
    figures.filter(PlannedFigures::is_whole).map_or(
        Value::Null,
        |plan| json!({ "makespan_s": plan.makespan.as_secs_f64(), "cost_usd": plan.bill.as_usd() }),
    )
}
