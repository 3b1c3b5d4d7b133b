//! `tasks.csv` and `vms.csv`.

use std::collections::BTreeMap;

use dormouse_engine::VmEnd;
use dormouse_policies::{Plan, PlannedTask, PlannedVm, StartReason};
use dormouse_units::Span;

use super::numbers::{secs, secs_or_blank, usd};
use super::task_times;
use crate::experiment::Experiment;
use crate::record::Record;

/// The columns of `tasks.csv`.
pub const TASK_COLUMNS: &str = "task,name,memory_bytes,status,attempts,vm,type,market,\
    first_started_s,finished_s,checkpoints,restores,migrations,steals,work_lost_s,cpu_real_s,\
    planned_vm,planned_start_s,planned_finish_s,promised_s,took_s";

/// The columns of `vms.csv`.
pub const VM_COLUMNS: &str = "vm,type,market,host,price_usd_per_hour,vcpus,launched_s,ready_s,\
    ended_s,end,hibernations,frozen_s,charged_s,cost_usd,tasks,cpu_promised_real_s,\
    cpu_received_real_s";

/// One line per task; what was planned for it last, blank where nothing was.
#[must_use]
pub fn tasks(experiment: &Experiment, record: &Record, plan: Option<&Plan>) -> String {
    let mut text = format!("{TASK_COLUMNS}\n");
    let planned = plan.map(|plan| planned(experiment, plan)).unwrap_or_default();
    let times = task_times(record);
    for (n, (task, spec)) in record.tasks.iter().zip(experiment.setup.bag.tasks.iter()).enumerate()
    {
        let time = times.iter().find(|time| time.task.get() as usize == n);
        let last = task.last().and_then(|a| record.vms.get(&a.vm));
        let count =
            |reason| task.attempts.iter().filter(|a| a.reason == reason).count().to_string();
        let lost: Span =
            task.attempts.iter().filter_map(|a| record.vms.get(&a.vm).map(|vm| a.lost(vm))).sum();
        let cpu_us: u64 = task.attempts.iter().map(|a| a.real_cpu_us).sum();
        let status = match (task.finished, task.attempts.is_empty()) {
            (Some(_), _) => "verified",
            (None, true) => "never-started",
            (None, false) => "unfinished",
        };
        line(
            &mut text,
            &[
                n.to_string(),
                quoted(&spec.name),
                spec.memory.get().to_string(),
                status.to_owned(),
                task.attempts.len().to_string(),
                last.map(|vm| vm.id.get().to_string()).unwrap_or_default(),
                last.map(|vm| quoted(vm.kind.as_str())).unwrap_or_default(),
                last.map(|vm| vm.market.to_string()).unwrap_or_default(),
                secs_or_blank(task.attempts.iter().find_map(|a| a.started)),
                secs_or_blank(task.finished),
                task.attempts.iter().map(|a| a.checkpoints.len()).sum::<usize>().to_string(),
                task.attempts
                    .iter()
                    .filter(|a| a.from.is_some() && a.started.is_some())
                    .count()
                    .to_string(),
                count(StartReason::Migrated),
                count(StartReason::Stolen),
                span(lost),
                span(Span::from_micros(cpu_us)),
                planned.get(&n).map(|p| p.0.to_string()).unwrap_or_default(),
                secs_or_blank(planned.get(&n).map(|p| p.1.start)),
                secs_or_blank(planned.get(&n).map(|p| p.1.end)),
                time.map(|t| span(t.promised)).unwrap_or_default(),
                time.map(|t| span(t.took)).unwrap_or_default(),
            ],
        );
    }
    text
}

/// Where and when each task was to run, by its number: the plan's VMs are launched in its order,
/// so that their numbers are those of the VMs that ran. A bag that shares its run is its first
/// tenant, whose numbers are that many apart.
pub(crate) fn planned(
    experiment: &Experiment,
    plan: &Plan,
) -> BTreeMap<usize, (usize, PlannedTask)> {
    let apart = experiment.tenants().len();
    let of_vm = |(n, vm): (usize, &PlannedVm)| {
        let tasks: Vec<_> = vm.vcpus.iter().flatten().copied().collect();
        tasks.into_iter().map(move |task| (task.task.get() as usize, (n * apart, task)))
    };
    plan.vms.iter().enumerate().flat_map(of_vm).collect()
}

/// One line per VM.
#[must_use]
pub fn vms(record: &Record) -> String {
    let mut text = format!("{VM_COLUMNS}\n");
    for vm in record.vms.values() {
        let charged: Span = vm.charges().iter().map(dormouse_cloud::Charge::duration).sum();
        let ready = vm.ready.unwrap_or(vm.end_or(record.end()));
        let there = vm.end_or(record.end()).since(ready);
        let frozen = there.saturating_sub(vm.awake(ready, vm.end_or(record.end())));
        let (promised, received) = vm.share.unwrap_or_default();
        line(
            &mut text,
            &[
                vm.id.get().to_string(),
                quoted(vm.kind.as_str()),
                vm.market.to_string(),
                vm.host.get().to_string(),
                vm.price.as_usd_per_hour().to_string(),
                vm.vcpus.to_string(),
                secs(vm.launched),
                secs_or_blank(vm.ready),
                secs_or_blank(vm.ended.map(|(at, ..)| at)),
                vm.ended.map(|(_, why, _)| end_word(why)).unwrap_or_default().to_owned(),
                vm.hibernations.len().to_string(),
                span(frozen),
                span(charged),
                usd(vm.cost()),
                finished_on(record, vm.id).to_string(),
                span(Span::from_micros(promised)),
                span(Span::from_micros(received)),
            ],
        );
    }
    text
}

/// How many tasks finished on a VM.
pub(crate) fn finished_on(record: &Record, vm: dormouse_units::VmId) -> usize {
    let there = |t: &&crate::record::TaskHistory| {
        t.finished.is_some() && t.last().is_some_and(|a| a.vm == vm)
    };
    record.tasks.iter().filter(there).count()
}

/// Why a VM ended, in a word.
pub(crate) const fn end_word(end: VmEnd) -> &'static str {
    match end {
        VmEnd::Terminated => "terminated",
        VmEnd::Preempted => "preempted",
        VmEnd::HostLost => "host-lost",
        VmEnd::Failed => "failed",
        VmEnd::WorkDone => "work-done",
        VmEnd::RunOver => "run-over",
    }
}

fn span(span: Span) -> String {
    secs(dormouse_units::Time::ZERO + span)
}

fn line(text: &mut String, fields: &[String]) {
    text.push_str(&fields.join(","));
    text.push('\n');
}

/// Quoted where it has to be (RFC 4180).
pub(crate) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
