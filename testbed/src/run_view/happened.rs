//! "What happened": interruptions, migrations, failures, lost hosts, and what each cost.

use dormouse_cloud::{Action, Target};
use dormouse_engine::VmEnd;
use dormouse_policies::StartReason;
use dormouse_units::{Span, Time, VmId};
use dormouse_view::{Block, Cell, Column, Table};

use super::outcome::OfBag;
use dormouse_tell::{AttemptEnd, Hibernation, Interrupted, Record};

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

/// Work lost by attempts that ended on `vm` between two times.
fn lost_on(record: &Record, vm: VmId, from: Time, until: Time) -> Span {
    let Some(history) = record.vms.get(&vm) else { return Span::ZERO };
    let attempts = record.tasks.iter().flat_map(|task| &task.attempts).filter(|a| a.vm == vm);
    attempts
        .filter(|a| a.ended.as_ref().is_some_and(|(at, _)| (from..=until).contains(at)))
        .map(|a| a.lost(history))
        .sum()
}

fn interruptions(record: &Record) -> Table {
    let mut table = Table::new([
        Column::text("provider"),
        Column::text("target"),
        Column::text("hit"),
        Column::seconds("asked for"),
        Column::seconds("took effect"),
        Column::seconds("work lost"),
    ]);
    table.extend(record.interruptions.iter().map(|i| interruption(record, i)));
    table
}

fn interruption(record: &Record, of: &Interrupted) -> Vec<Cell> {
    let action = match of.action {
        Action::Hibernate => "hibernate",
        Action::Resume => "resume",
        Action::Preempt => "preempt",
    };
    let target = match &of.target {
        Target::Type(kind) => format!("all spot {kind}"),
        Target::Vm(vm) => vm.to_string(),
    };
    let hit: Vec<_> = of.vms.iter().map(ToString::to_string).collect();
    let effect = of.vms.iter().filter_map(|&vm| took_effect(record, vm, of.action, of.asked)).max();
    let lost: Option<Span> = (!hit.is_empty()).then(|| match of.action {
        Action::Resume => Span::ZERO,
        _ => of.vms.iter().map(|&vm| lost_after(record, vm, of.at)).sum(),
    });
    let none = "none: no such VM ran".to_owned();
    vec![
        Cell::text(action),
        Cell::text(target),
        Cell::text(if hit.is_empty() { none } else { hit.join(", ") }),
        Cell::time(of.asked),
        Cell::maybe(effect, Cell::time),
        Cell::maybe(lost, Cell::span),
    ]
}

/// What a hibernation or preemption at `at` cost `vm`: until it was resumed or gone.
fn lost_after(record: &Record, vm: VmId, at: Time) -> Span {
    let Some(history) = record.vms.get(&vm) else { return Span::ZERO };
    let back = history.hibernations.iter().find(|h| h.frozen >= at).and_then(|h| h.resumed);
    lost_on(record, vm, at, back.map_or(record.end(), |(_, resumed)| resumed))
}

fn took_effect(record: &Record, vm: VmId, action: Action, asked: Time) -> Option<Time> {
    let vm = record.vms.get(&vm)?;
    match action {
        Action::Hibernate => vm.hibernations.iter().find(|h| h.asked == asked).map(|h| h.frozen),
        Action::Resume => {
            let resumed = |h: &Hibernation| h.resumed.filter(|resumed| resumed.0 == asked);
            vm.hibernations.iter().find_map(resumed).map(|(_, at)| at)
        }
        Action::Preempt => vm.ended.map(|(at, ..)| at),
    }
}

fn hosts(record: &Record) -> Table {
    let mut table = Table::new([
        Column::text("host lost"),
        Column::text("why"),
        Column::text("VMs on it"),
        Column::seconds("at"),
        Column::seconds("work lost"),
    ]);
    for (id, host) in &record.hosts {
        let Some((at, why)) = &host.lost else { continue };
        let gone = record.vms.values().filter(|vm| {
            vm.host == *id && vm.ended.is_some_and(|(_, end, _)| end == VmEnd::HostLost)
        });
        let gone: Vec<_> = gone.map(|vm| vm.id).collect();
        let names: Vec<_> = gone.iter().map(ToString::to_string).collect();
        table.push([
            Cell::text(format!("{id} ({})", host.name)),
            Cell::text(why.as_str()),
            Cell::text(names.join(", ")),
            Cell::time(*at),
            Cell::span(gone.iter().map(|&vm| lost_on(record, vm, *at, *at)).sum()),
        ]);
    }
    table
}

/// A row for each migration that is counted: also of tasks that had not begun where they were to
/// run.
fn migrations(of: &OfBag<'_>) -> Table {
    let mut table = Table::new([
        Column::text("migrated"),
        Column::text("from"),
        Column::text("to"),
        Column::seconds("left at"),
        Column::seconds("ran again at"),
        Column::text("work kept"),
        Column::seconds("work lost"),
    ]);
    let (record, bag) = (of.record, &of.of.header.experiment.setup.bag);
    let mut rows = Vec::new();
    for (n, task) in record.tasks.iter().enumerate() {
        let name = bag.tasks.get(n).map(|spec| format!("task{n} ({})", spec.name));
        for (k, is) in task.attempts.iter().enumerate() {
            if is.reason != StartReason::Migrated {
                continue;
            }
            let was = k.checked_sub(1).and_then(|before| task.attempts.get(before));
            let on = was.and_then(|was| record.vms.get(&was.vm));
            rows.push((
                is.sent,
                vec![
                    Cell::text(name.clone().unwrap_or_default()),
                    was.map_or(Cell::text("its queue"), |was| Cell::text(was.vm.to_string())),
                    Cell::text(is.vm.to_string()),
                    Cell::maybe(was.and_then(|was| was.ended.as_ref()), |(at, _)| Cell::time(*at)),
                    Cell::maybe(is.started, Cell::time),
                    Cell::text(is.from.map_or("nothing".to_owned(), |(_, done)| done.to_string())),
                    Cell::span(was.zip(on).map(|(was, vm)| was.lost(vm)).unwrap_or_default()),
                ],
            ));
        }
    }
    rows.sort_by_key(|(at, _)| *at);
    table.extend(rows.into_iter().map(|(_, row)| row));
    table
}

fn failures(record: &Record) -> Table {
    let mut table = Table::new([
        Column::text("attempt failed"),
        Column::text("on"),
        Column::text("why"),
        Column::seconds("at"),
        Column::seconds("work lost"),
    ]);
    for (n, task) in record.tasks.iter().enumerate() {
        for attempt in &task.attempts {
            let Some((at, AttemptEnd::Failed(why))) = &attempt.ended else { continue };
            let lost = record.vms.get(&attempt.vm).map(|vm| attempt.lost(vm));
            table.push([
                Cell::text(format!("task{n}")),
                Cell::text(attempt.vm.to_string()),
                Cell::text(why.as_str()),
                Cell::time(*at),
                Cell::span(lost.unwrap_or_default()),
            ]);
        }
    }
    table
}
