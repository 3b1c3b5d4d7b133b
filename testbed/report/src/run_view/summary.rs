//! `summary.json` of a run with a bag: its results for programs.

use dormouse_analysis::fidelity::BackgroundSupply;
use dormouse_host::calibration::SpeedupChoice;
use dormouse_model::TenantWork;
use dormouse_units::{Money, Span, Time};
use serde_json::{Value, json};

use super::beside::RunsBeside;
use super::outcome::BagResults;
use super::summary_parts::{checkpoint_failures, leave_out};
use super::{bag, faults, jobs, prices, requests, taken};

/// The summary of a run with a bag, as JSON.
pub(super) fn summary(of: &BagResults<'_>, beside: &RunsBeside) -> Value {
    let (header, record) = (of.of.header, of.record);
    let plan = of.of.plan.as_ref().zip(of.planned_figures());
    let experiment = &header.experiment;
    let (disks, surplus) = (record.stopped_disks_cost(), record.surplus_cost());
    let vms = record.vms.values().map(|vm| {
        let mut row = json!({
            "id": vm.id.get(),
            "type": vm.kind,
            "market": vm.market,
            "launched_s": vm.launched.as_secs_f64(),
            "ready_s": vm.ready.map(Time::as_secs_f64),
            "ended_s": vm.ended.map(|(at, ..)| at.as_secs_f64()),
            "end": vm.ended.map(|(_, why, _)| why.one_word()),
            "hibernations": vm.hibernations.len(),
            "cost_usd": vm.cost().as_usd(),
            "tasks": record.finished_on(vm.id),
            "stopped_disk_usd": disks.map(|_| vm.meter().disk_cost().as_usd()),
            "surplus_usd": surplus.map(|_| vm.surcharge.as_usd()),
        });
        leave_out(&mut row, &["stopped_disk_usd", "surplus_usd"]);
        row
    });
    let mut summary = json!({
        "experiment": experiment.name,
        "scheduler": experiment.scheduler_name(),
        "mode": header.mode,
        "seed": experiment.setup.seed,
        "speedup": header.live_speedup(),
        "makespan_s": record.makespan().filter(|_| of.has_tasks()).map(Time::as_secs_f64),
        "cost_usd": record.cost().as_usd(),
        "stopped_disk_usd": disks.map(Money::as_usd),
        "surplus_usd": surplus.map(Money::as_usd),
        "deadline_s": of.has_tasks().then(|| of.deadline().as_secs_f64()),
        "deadline_met": of.has_tasks().then(|| of.deadline_met()),
        "tasks": of.record.outcomes().summary(),
        "counts": record.counts,
        "checkpoint_failures": checkpoint_failures(record),
        "work_lost_s": record.work_lost().as_secs_f64(),
        "plan": plan.map(|(plan, planned)| json!({
            "makespan_s": planned.makespan.as_secs_f64(),
            "cost_usd": planned.bill.as_usd(),
            "tasks": planned.tasks,
            "spot_limit_s": plan.spot_limit.as_secs_f64(),
            "evaluations": plan.evaluations,
        })),
        "vms": vms.collect::<Vec<_>>(),
        "fidelity": of.of.fidelity,
        "tenants": of.of.jobs.as_ref().map(|own| json!([of_bag(of), jobs::part_of_summary(of.of, own)])),
        "requests": of.of.requests.as_ref().map(requests::part_of_summary),
        "background": BackgroundSupply::from_record(record).map(|background| background.summary()),
        "taken": taken::all_taken(of).map(|taken| taken.summary()),
        "faults": faults::summary(&faults::faulted(of.of)),
        "service": service_figures(of),
        "prices": prices::summary(of.of),
        "cancelled": record.cancelled,
        "speedup_choice": header.speedup.as_ref().map(speedup_choice),
        "decisions_sha256": record.digest(),
        "steps": record.steps,
        "command": header.command,
        "wall_s": of.of.wall_s,
    });
    let longest = bag::longest_emulated(of).map(Span::as_secs_f64);
    summary["longest_until_inputs_came_s"] = json!(longest);
    for (key, said) in beside.summary() {
        summary[key] = said;
    }
    leave_out(
        &mut summary,
        &[
            "stopped_disk_usd",
            "surplus_usd",
            "longest_until_inputs_came_s",
            "on_demand_alone",
            "without_interruptions",
            "checkpoint_failures",
            "fidelity",
            "tenants",
            "requests",
            "background",
            "taken",
            "faults",
            "service",
            "prices",
            "cancelled",
            "speedup_choice",
        ],
    );
    summary
}

/// Figures of the batch service, if it ran the bag.
fn service_figures(of: &BagResults<'_>) -> Option<Value> {
    let figures = of.record.service.figures(of.cost_of_bag());
    let figures: serde_json::Map<_, _> =
        figures.map(|(name, figure)| (name.to_owned(), json!(figure))).collect();
    (!figures.is_empty()).then_some(Value::Object(figures))
}

/// Results of a bag that shares the run.
fn of_bag(of: &BagResults<'_>) -> Value {
    json!({
        "work": TenantWork::Bag.name(),
        "scheduler": of.of.header.experiment.scheduler_name(),
        "makespan_s": of.record.makespan().map(Time::as_secs_f64),
        "cost_usd": of.cost_of_bag().as_usd(),
        "tasks": of.record.outcomes().summary(),
    })
}

/// Reason for the run's speed-up as JSON, with the calibration's measurements at the load that
/// decided it.
fn speedup_choice(choice: &SpeedupChoice) -> Value {
    let calibration = choice.calibration.as_ref();
    json!({
        "why": choice.why,
        "load": choice.load,
        "calibrated": calibration.map(|c| &c.made),
        "cells": calibration.map(|c| c.at_load(choice.load.unwrap_or_default())),
    })
}
