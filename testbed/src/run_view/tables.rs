//! The tables `tasks` and `vms`.

use dormouse_policies::StartReason;
use dormouse_tell::Mode;
use dormouse_tell::Record;
use dormouse_tell::fidelity::task_times;
use dormouse_units::Span;
use dormouse_view::{Cell, Column, Table};

use super::outcome::OfBag;
use super::plan::planned;
use crate::output::end_word;

/// The columns of `tasks.csv`.
fn task_columns() -> Vec<Column> {
    vec![
        Column::count("task"),
        Column::text("name"),
        Column::count("memory, bytes").named("memory_bytes"),
        Column::text("status"),
        Column::count("attempts"),
        Column::count("VM").named("vm"),
        Column::text("type"),
        Column::text("market"),
        Column::seconds("first started").named("first_started_s"),
        Column::seconds("finished").named("finished_s"),
        Column::count("checkpoints"),
        Column::count("restores"),
        Column::count("migrations"),
        Column::count("steals"),
        Column::seconds("work lost").named("work_lost_s"),
        Column::seconds("CPU time, real").named("cpu_real_s"),
        Column::count("planned VM").named("planned_vm"),
        Column::seconds("planned start").named("planned_start_s"),
        Column::seconds("planned finish").named("planned_finish_s"),
        Column::seconds("promised").named("promised_s"),
        Column::seconds("took").named("took_s"),
    ]
}

/// The columns of `vms.csv`.
fn vm_columns() -> Vec<Column> {
    vec![
        Column::count("VM").named("vm"),
        Column::text("type"),
        Column::text("market"),
        Column::count("host"),
        Column::number("price, $ an hour").named("price_usd_per_hour"),
        Column::count("vCPUs").named("vcpus"),
        Column::seconds("launched").named("launched_s"),
        Column::seconds("ready").named("ready_s"),
        Column::seconds("ended").named("ended_s"),
        Column::text("end"),
        Column::count("hibernations"),
        Column::seconds("frozen").named("frozen_s"),
        Column::seconds("charged").named("charged_s"),
        Column::dollars("cost").named("cost_usd"),
        Column::count("tasks"),
        Column::seconds("CPU time promised, real").named("cpu_promised_real_s"),
        Column::seconds("CPU time received, real").named("cpu_received_real_s"),
    ]
}

/// A row a task; what was planned for it last, blank where nothing was.
pub(super) fn tasks(of: &OfBag<'_>) -> Table {
    let mut table = Table::new(task_columns());
    let (record, experiment) = (of.record, &of.of.header.experiment);
    let planned = of.of.plan.map(|plan| planned(experiment, plan)).unwrap_or_default();
    let times = task_times(record);
    for (n, (task, spec)) in record.tasks.iter().zip(experiment.setup.bag.tasks.iter()).enumerate()
    {
        let time = times.iter().find(|time| time.task.get() as usize == n);
        let last = task.last().and_then(|a| record.vms.get(&a.vm));
        let started_as =
            |reason| Cell::count(task.attempts.iter().filter(|a| a.reason == reason).count());
        let lost: Span =
            task.attempts.iter().filter_map(|a| record.vms.get(&a.vm).map(|vm| a.lost(vm))).sum();
        let status = match (task.finished, of.of.header.mode, task.attempts.is_empty()) {
            (Some(_), Mode::Live, _) => "verified",
            // A model has no answer that could be verified.
            (Some(_), Mode::Virtual, _) => "completed",
            (None, _, true) => "never-started",
            (None, _, false) => "unfinished",
        };
        let restored = task.attempts.iter().filter(|a| a.from.is_some() && a.started.is_some());
        let plan = planned.get(&n);
        table.push([
            Cell::count(n),
            Cell::text(&*spec.name),
            Cell::count(spec.memory.get()),
            Cell::text(status),
            Cell::count(task.attempts.len()),
            Cell::maybe(last, |vm| Cell::count(vm.id.get())),
            Cell::maybe(last, |vm| Cell::text(vm.kind.as_str())),
            Cell::maybe(last, |vm| Cell::text(vm.market.to_string())),
            Cell::maybe(task.attempts.iter().find_map(|a| a.started), Cell::time),
            Cell::maybe(task.finished, Cell::time),
            Cell::count(task.attempts.iter().map(|a| a.checkpoints.len()).sum::<usize>()),
            Cell::count(restored.count()),
            started_as(StartReason::Migrated),
            started_as(StartReason::Stolen),
            Cell::span(lost),
            Cell::span(Span::from_micros(task.attempts.iter().map(|a| a.real_cpu_us).sum())),
            Cell::maybe(plan, |plan| Cell::count(plan.0)),
            Cell::maybe(plan, |plan| Cell::time(plan.1.start)),
            Cell::maybe(plan, |plan| Cell::time(plan.1.end)),
            Cell::maybe(time, |time| Cell::span(time.promised)),
            Cell::maybe(time, |time| Cell::span(time.took)),
        ]);
    }
    table
}

/// A row a VM.
pub(super) fn vms(record: &Record) -> Table {
    let mut table = Table::new(vm_columns());
    for vm in record.vms.values() {
        let ready = vm.ready.unwrap_or(vm.end_or(record.end()));
        let there = vm.end_or(record.end()).since(ready);
        let frozen = there.saturating_sub(vm.awake(ready, vm.end_or(record.end())));
        let (promised, received) = vm.share.unwrap_or_default();
        table.push([
            Cell::count(vm.id.get()),
            Cell::text(vm.kind.as_str()),
            Cell::text(vm.market.to_string()),
            Cell::count(vm.host.get()),
            Cell::number(vm.price.as_usd_per_hour()),
            Cell::count(vm.vcpus),
            Cell::time(vm.launched),
            Cell::maybe(vm.ready, Cell::time),
            Cell::maybe(vm.ended.map(|(at, ..)| at), Cell::time),
            Cell::maybe(vm.ended, |(_, why, _)| Cell::text(end_word(why))),
            Cell::count(vm.hibernations.len()),
            Cell::span(frozen),
            Cell::span(vm.charges().iter().map(dormouse_cloud::Charge::duration).sum()),
            Cell::money(vm.cost()),
            Cell::count(record.finished_on(vm.id)),
            Cell::span(Span::from_micros(promised)),
            Cell::span(Span::from_micros(received)),
        ]);
    }
    table
}
