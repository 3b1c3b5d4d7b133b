//! The tables `tasks` and `vms`.

use dormouse_analysis::outcome::{WorkOutcome, wording};
use dormouse_analysis::{RunRecord, TaskHistory, VmHistory};
use dormouse_cloud::ChargedInterval;
use dormouse_model::{ProgramEnd, ProgramExit, StartReason};
use dormouse_tasks::own::folder_of;
use dormouse_units::{Span, TaskId};
use dormouse_view::{TableColumn, TypedTable};

use super::outcome::{BagResults, TaskOutcome};
use dormouse_analysis::fidelity::task_times;

/// Table with one row for each task; planned values come last and are blank without a plan.
pub(super) fn tasks(of: &BagResults<'_>) -> TypedTable {
    let record = of.record;
    let times = task_times(record);
    let time = |t: &TaskOutcome<'_>| times.iter().find(|time| time.task.get() as usize == t.n);
    let last = |t: &TaskOutcome<'_>| t.is.last().and_then(|a| record.vms.get(&a.vm));
    let started_as =
        |t: &TaskOutcome<'_>, why| t.is.attempts.iter().filter(|a| a.reason == why).count();
    let restored = |t: &TaskOutcome<'_>| {
        t.is.attempts.iter().filter(|a| a.from.is_some() && a.started.is_some()).count()
    };
    let kept =
        |t: &TaskOutcome<'_>| t.is.attempts.iter().map(|a| a.checkpoints.len()).sum::<usize>();
    let lost = |t: &TaskOutcome<'_>| t.is.attempts.iter().map(|a| record.lost(a)).sum::<Span>();
    let spec = |task: &TaskId| of.of.header.experiment.setup.bag.tasks.get(task.get() as usize);
    let name = |task: &TaskId| spec(task).map(|spec| spec.name.as_str());
    let names = |after: &[TaskId]| after.iter().filter_map(name).collect::<Vec<_>>().join(" ");
    let used = |t: &TaskOutcome<'_>| {
        t.is.attempts.iter().map(|a| a.real_cpu_us).fold(0, u64::saturating_add)
    };
    let status = |task: &TaskHistory| match record.outcome(task) {
        None | Some(WorkOutcome::GivenUp) if task.attempts.is_empty() => "never-started",
        outcome => outcome.unwrap_or(WorkOutcome::GivenUp).word(),
    };
    let table = TypedTable::with_rows(of.tasks())
        .column(TableColumn::count("task").as_name(), |t| t.n)
        .column(TableColumn::text("name"), |t| t.spec.name.clone())
        .column(TableColumn::count("memory, bytes").named("memory_bytes"), |t| t.spec.memory.get())
        .column(TableColumn::text("status"), |t| status(t.is))
        .column(TableColumn::count("attempts"), |t| t.is.attempts.len())
        .column(TableColumn::count("VM").as_name(), |t| last(t).map(|vm| vm.id.get()))
        .column(TableColumn::text("type"), |t| last(t).map(|vm| vm.kind.to_string()))
        .column(TableColumn::text("market"), |t| last(t).map(|vm| vm.market.to_string()))
        .column(
            TableColumn::seconds("first started").named("first_started_s"),
            TaskOutcome::started,
        )
        .column(TableColumn::seconds("finished").named("finished_s"), |t| t.is.finished)
        .column(TableColumn::count("checkpoints"), kept)
        .column(TableColumn::count("restores"), restored)
        .column(TableColumn::count("migrations"), |t| t.is.migrations().count())
        .column(TableColumn::count("steals"), |t| started_as(t, StartReason::Stolen))
        .column(TableColumn::seconds(wording::WORK_LOST).named("work_lost_s"), lost)
        .column(TableColumn::seconds("CPU time, real").named("cpu_real_s"), |t| {
            Span::from_micros(used(t))
        })
        .column(TableColumn::count("planned VM"), |t| t.planned.map(|(vm, _)| vm))
        .column(TableColumn::seconds("planned start").named("planned_start_s"), |t| {
            t.planned.map(|(_, plan)| plan.start)
        })
        .column(TableColumn::seconds("planned finish").named("planned_finish_s"), |t| {
            t.planned.map(|(_, plan)| plan.end)
        })
        .column(TableColumn::seconds("promised").named("promised_s"), |t| {
            time(t).map(|t| t.promised)
        })
        .column(TableColumn::seconds("took").named("took_s"), |t| time(t).map(|t| t.took))
        .column(TableColumn::seconds("submitted").named("submitted_s"), |t| t.spec.submitted)
        .column(TableColumn::text("after"), |t| names(&t.spec.after));
    if of.of.header.experiment.own_programs.is_empty() {
        return table.into();
    }
    table
        .column(TableColumn::text("exit"), |t| {
            own_end(t).and_then(|end| end.exit.map(exit_in_words))
        })
        .column(TableColumn::seconds("waited, real").named("waited_real_s"), |t| {
            own_end(t).map(|end| Span::from_micros(end.real_waited_us))
        })
        .column(TableColumn::count("peak memory, bytes").named("peak_memory_bytes"), |t| {
            own_end(t).map(|end| end.memory.get())
        })
        .column(TableColumn::count("directory, bytes").named("directory_bytes"), |t| {
            own_end(t).map(|end| end.directory.get())
        })
        .column(TableColumn::text("folder"), |t| {
            let id = u32::try_from(t.n).ok().map(TaskId::new)?;
            own_end(t).map(|_| folder_of(id))
        })
        .into()
}

/// End of a program: its status or its signal.
fn exit_in_words(how: ProgramExit) -> String {
    match how {
        ProgramExit::Status(status) => status.to_string(),
        ProgramExit::Signal(signal) => format!("signal {signal}"),
    }
}

/// End of the user's own program that a task ran last, if it ran one to its end.
fn own_end<'a>(task: &TaskOutcome<'a>) -> Option<&'a ProgramEnd> {
    task.is.attempts.iter().rev().find_map(|attempt| attempt.own.as_deref())
}

/// Table with one row for each VM.
pub(super) fn vms(record: &RunRecord) -> TypedTable {
    let frozen = |vm: &VmHistory| {
        let end = vm.end_or(record.end());
        let ready = vm.ready.unwrap_or(end);
        end.since(ready).saturating_sub(vm.awake(ready, end))
    };
    let share = |vm: &VmHistory| {
        let (promised, received) = vm.share.unwrap_or_default();
        (Span::from_micros(promised), Span::from_micros(received))
    };
    let real = |what: &str| {
        let name = format!("cpu_{what}_real_s");
        TableColumn::seconds(format!("CPU time {what}, real")).named(name)
    };
    let table = TypedTable::with_rows(record.vms.values())
        .column(TableColumn::count("VM").as_name(), |vm| vm.id.get())
        .column(TableColumn::text("type"), |vm| vm.kind.as_str())
        .column(TableColumn::text("market"), |vm| vm.market.to_string())
        .column(TableColumn::count("host").as_name(), |vm| vm.host.get())
        .column(TableColumn::number("price, $ an hour").named("price_usd_per_hour"), |vm| {
            vm.price.as_usd_per_hour()
        })
        .column(TableColumn::count("vCPUs"), |vm| vm.vcpus)
        .column(TableColumn::seconds("launched").named("launched_s"), |vm| vm.launched)
        .column(TableColumn::seconds("ready").named("ready_s"), |vm| vm.ready)
        .column(TableColumn::seconds("ended").named("ended_s"), |vm| vm.ended.map(|(at, ..)| at))
        .column(TableColumn::text("end"), |vm| vm.ended.map(|(_, why, _)| why.one_word()))
        .column(TableColumn::count("hibernations"), |vm| vm.hibernations.len())
        .column(TableColumn::seconds("frozen").named("frozen_s"), |vm| frozen(vm))
        .column(TableColumn::seconds(wording::CHARGED).named("charged_s"), |vm| {
            vm.charges().iter().map(ChargedInterval::duration).sum::<Span>()
        })
        .column(TableColumn::dollars("cost").named("cost_usd"), |vm| vm.cost())
        .column(TableColumn::count("tasks"), |vm| record.finished_on(vm.id))
        .column(real("promised"), |vm| share(vm).0)
        .column(real("received"), |vm| share(vm).1);
    let table = match record.stopped_disks_cost() {
        None => table,
        Some(_) => table
            .column(TableColumn::dollars(wording::STOPPED_DISK).named("stopped_disk_usd"), |vm| {
                vm.meter().disk_cost()
            }),
    };
    match record.surplus_cost() {
        None => table.into(),
        Some(_) => table
            .column(TableColumn::dollars(wording::SURPLUS_CREDITS).named("surplus_usd"), |vm| {
                vm.surcharge
            })
            .into(),
    }
}
