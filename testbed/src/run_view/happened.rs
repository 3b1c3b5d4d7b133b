//! "What happened": interruptions, migrations, failures, lost hosts, and what each cost.

use dormouse_cloud::{Action, Target};
use dormouse_engine::VmEnd;
use dormouse_policies::StartReason;
use dormouse_tell::{AttemptEnd, Record};
use dormouse_units::{Span, VmId};
use dormouse_view::{Block, Column, Table};

use super::outcome::OfBag;

/// The section's content.
pub(super) fn happened(of: &OfBag<'_>) -> Vec<Block> {
    let record = of.record;
    let tables = [interruptions(record), hosts(record), migrations(of), failures(record)];
    let mut blocks: Vec<_> =
        tables.into_iter().filter(|table| !table.is_empty()).map(Block::Table).collect();
    if let Some(why) = &record.cancelled {
        blocks.push(Block::text(format!("The run was ended before its time: {why}.")));
    }
    blocks.extend(record.rejected.iter().map(|(at, why)| {
        let at = at.as_secs_f64();
        Block::text(format!("A decision at {at:.1} s could not be carried out: {why}."))
    }));
    if blocks.is_empty() {
        blocks.push(Block::text("Nothing out of the ordinary."));
    }
    blocks
}

fn names(vms: &[VmId]) -> String {
    vms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn interruptions(record: &Record) -> Table {
    Table::of(&record.interruptions)
        .column(Column::text("provider"), |i| match i.action {
            Action::Hibernate => "hibernate",
            Action::Resume => "resume",
            Action::Preempt => "preempt",
        })
        .column(Column::text("target"), |i| match &i.target {
            Target::Type(kind) => format!("all spot {kind}"),
            Target::Vm(vm) => vm.to_string(),
        })
        .column(Column::text("hit"), |i| match i.vms.as_slice() {
            [] => "none: no such VM ran".to_owned(),
            hit => names(hit),
        })
        .column(Column::seconds("asked for"), |i| i.asked)
        .column(Column::seconds("took effect"), |i| record.took_effect(i))
        .column(Column::seconds("work lost"), |i| record.lost_by(i))
        .into()
}

fn hosts(record: &Record) -> Table {
    let lost = record.hosts.iter().filter_map(|(id, host)| {
        let (at, why) = host.lost.as_ref()?;
        let gone = record.vms.values().filter(|vm| {
            vm.host == *id && vm.ended.is_some_and(|(_, end, _)| end == VmEnd::HostLost)
        });
        let gone: Vec<_> = gone.map(|vm| vm.id).collect();
        Some((format!("{id} ({})", host.name), gone, *at, why))
    });
    Table::of(lost)
        .column(Column::text("host lost"), |(name, ..)| name.clone())
        .column(Column::text("why"), |(.., why)| why.as_str())
        .column(Column::text("VMs on it"), |(_, gone, ..)| names(gone))
        .column(Column::seconds("at"), |(_, _, at, _)| *at)
        .column(Column::seconds("work lost"), |(_, gone, at, _)| {
            gone.iter().map(|&vm| record.lost_on(vm, *at, *at)).sum::<Span>()
        })
        .into()
}

/// A row for each migration that is counted: also of tasks that had not begun where they were to
/// run.
fn migrations(of: &OfBag<'_>) -> Table {
    let mut all: Vec<_> = of
        .tasks()
        .flat_map(|task| {
            let attempts = task.is.attempts.iter().enumerate();
            let migrated = attempts.filter(|(_, is)| is.reason == StartReason::Migrated);
            let before = |k: usize| k.checked_sub(1).and_then(|k| task.is.attempts.get(k));
            migrated.map(move |(k, is)| (task, before(k), is))
        })
        .collect();
    all.sort_by_key(|(.., is)| is.sent);
    Table::of(all)
        .column(Column::text("migrated"), |(task, ..)| task.name())
        .column(Column::text("from"), |(_, was, _)| {
            was.map_or("its queue".to_owned(), |was| was.vm.to_string())
        })
        .column(Column::text("to"), |(.., is)| is.vm.to_string())
        .column(Column::seconds("left at"), |(_, was, _)| Some(was.as_ref()?.ended.as_ref()?.0))
        .column(Column::seconds("ran again at"), |(.., is)| is.started)
        .column(Column::text("work kept"), |(.., is)| {
            is.from.map_or("nothing".to_owned(), |(_, done)| done.to_string())
        })
        .column(Column::seconds("work lost"), |(_, was, _)| {
            was.map_or(Span::ZERO, |was| of.record.lost(was))
        })
        .into()
}

fn failures(record: &Record) -> Table {
    let failed = record.tasks.iter().enumerate().flat_map(|(n, task)| {
        task.attempts.iter().filter_map(move |attempt| match &attempt.ended {
            Some((at, AttemptEnd::Failed(why))) => Some((n, attempt, *at, why)),
            _ => None,
        })
    });
    Table::of(failed)
        .column(Column::text("attempt failed"), |(n, ..)| format!("task{n}"))
        .column(Column::text("on"), |(_, attempt, ..)| attempt.vm.to_string())
        .column(Column::text("why"), |(.., why)| why.as_str())
        .column(Column::seconds("at"), |(_, _, at, _)| *at)
        .column(Column::seconds("work lost"), |(_, attempt, ..)| record.lost(attempt))
        .into()
}
