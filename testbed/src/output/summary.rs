//! `summary.json`: what came out, for programs.

use std::path::PathBuf;

use dormouse_engine::{Work, is_of};
use dormouse_policies::Plan;
use dormouse_units::{Money, Span, Time};
use serde_json::{Value, json};

use super::background::Background;
use super::csv::{self, end_word, finished_on};
use super::{Fidelity, Header, JobsPart, OutputError, Staging, gantt, report};
use crate::calibration::SpeedupChoice;
use crate::record::{Record, VmHistory};

/// Everything that outputs are made of.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// The run's history: its tasks, VMs and hosts.
    pub record: &'a Record,
    /// What the scheduler had planned, if it plans.
    pub plan: Option<&'a Plan>,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<&'a Fidelity>,
    /// What came of the parallel jobs that share the run, if there are any.
    pub jobs: Option<&'a JobsPart>,
    /// Real seconds it took: the one thing that differs between equal runs.
    pub wall_s: f64,
}

impl Outcome<'_> {
    /// The deadline.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.header.experiment.setup.bag.deadline
    }

    /// Whether all tasks were finished by the deadline.
    #[must_use]
    pub fn deadline_met(&self) -> bool {
        self.record.makespan().is_some_and(|end| end <= Time::ZERO + self.deadline())
    }

    /// Time computed for nothing, over all attempts.
    #[must_use]
    pub fn work_lost(&self) -> Span {
        let record = self.record;
        record
            .tasks
            .iter()
            .flat_map(|t| &t.attempts)
            .filter_map(|a| record.vms.get(&a.vm).map(|vm| a.lost(vm)))
            .sum()
    }

    /// Writes everything but the log into the folder, and puts it in place.
    ///
    /// # Errors
    ///
    /// The system refuses; nothing is left then.
    pub fn write(&self, staging: Staging) -> Result<PathBuf, OutputError> {
        let experiment = &self.header.experiment;
        staging.write("tasks.csv", &csv::tasks(experiment, self.record, self.plan))?;
        staging.write("vms.csv", &csv::vms(self.record))?;
        if let Some(plan) = self.plan {
            staging.write("plan.json", &format!("{:#}\n", json!(plan)))?;
        }
        staging.write("gantt.svg", &self.gantt())?;
        if let Some(jobs) = self.jobs {
            staging.write("jobs-gantt.svg", &jobs.gantt)?;
        }
        staging.write("report.html", &report::report(self))?;
        staging.write("summary.json", &format!("{:#}\n", self.summary()))?;
        staging.commit()
    }

    /// The content of `gantt.svg`.
    #[must_use]
    pub fn gantt(&self) -> String {
        gantt::gantt(self)
    }

    /// The content of `summary.json`.
    #[must_use]
    pub fn summary(&self) -> Value {
        let Self { header, record, .. } = self;
        let experiment = &header.experiment;
        let total = record.tasks.len();
        let finished = record.finished();
        let vms: Vec<_> = record
            .vms
            .values()
            .map(|vm| {
                json!({
                    "id": vm.id.get(),
                    "type": vm.kind,
                    "market": vm.market,
                    "launched_s": vm.launched.as_secs_f64(),
                    "ready_s": vm.ready.map(Time::as_secs_f64),
                    "ended_s": vm.ended.map(|(at, ..)| at.as_secs_f64()),
                    "end": vm.ended.map(|(_, why, _)| end_word(why)),
                    "hibernations": vm.hibernations.len(),
                    "cost_usd": vm.cost().as_usd(),
                    "tasks": finished_on(record, vm.id),
                })
            })
            .collect();
        let mut summary = json!({
            "experiment": experiment.name,
            "scheduler": experiment.scheduler_name(),
            "mode": header.mode,
            "seed": experiment.setup.seed,
            "speedup": header.live_speedup(),
            "makespan_s": record.makespan().map(Time::as_secs_f64),
            "cost_usd": record.cost().as_usd(),
            "deadline_s": self.deadline().as_secs_f64(),
            "deadline_met": self.deadline_met(),
            "tasks": {
                "total": total,
                "completed": finished,
                "verified": finished,
                "failed": total - finished,
            },
            "counts": record.counts,
            "work_lost_s": self.work_lost().as_secs_f64(),
            "plan": self.plan.map(|plan| json!({
                "makespan_s": plan.makespan.as_secs_f64(),
                "cost_usd": plan.cost.as_usd(),
                "spot_limit_s": plan.spot_limit.as_secs_f64(),
                "evaluations": plan.evaluations,
            })),
            "vms": vms,
        });
        if let (Some(fidelity), Some(object)) = (self.fidelity, summary.as_object_mut()) {
            object.insert("fidelity".into(), json!(fidelity));
        }
        if let Some(object) = summary.as_object_mut() {
            if let Some(jobs) = self.jobs {
                object.insert("tenants".into(), json!([self.bag_summary(), jobs.summary]));
            }
            if let Some(background) = Background::of(record) {
                object.insert("background".into(), background.summary());
            }
            if let Some(why) = &record.cancelled {
                object.insert("cancelled".into(), json!(why));
            }
            if let Some(choice) = &header.speedup {
                object.insert("speedup_choice".into(), speedup_choice(choice));
            }
            object.insert("decisions_sha256".into(), json!(record.digest()));
            object.insert("steps".into(), json!(record.steps));
            object.insert("command".into(), json!(header.command));
            object.insert("wall_s".into(), json!(self.wall_s));
        }
        summary
    }
}

impl Outcome<'_> {
    /// What a bag that shares the run came to.
    fn bag_summary(&self) -> Value {
        let (record, experiment) = (self.record, &self.header.experiment);
        let (total, finished) = (record.tasks.len(), record.finished());
        json!({
            "work": Work::Bag.name(),
            "scheduler": experiment.scheduler_name(),
            "makespan_s": record.makespan().map(Time::as_secs_f64),
            "cost_usd": self.bag_cost().as_usd(),
            "tasks": {
                "total": total,
                "completed": finished,
                "verified": finished,
                "failed": total - finished,
            },
        })
    }

    /// What the VMs of the bag cost.
    fn bag_cost(&self) -> Money {
        let of = self.header.experiment.tenants();
        let own = self.record.vms.values().filter(|vm| is_of(vm.id, &of, Work::Bag));
        own.map(VmHistory::cost).sum()
    }
}

/// Why it ran at its speed-up: the cells are those at the load that counts.
fn speedup_choice(choice: &SpeedupChoice) -> Value {
    let calibration = choice.calibration.as_ref();
    json!({
        "why": choice.why,
        "load": choice.load,
        "calibrated": calibration.map(|c| &c.made),
        "cells": calibration.map(|c| c.at_load(choice.load.unwrap_or_default())),
    })
}
