//! "What happened": interruptions, migrations, failures, lost hosts, and what each cost.

use dormouse_cloud::{Action, Target};
use dormouse_engine::VmEnd;
use dormouse_policies::StartReason;
use dormouse_units::{Span, Time, VmId};

use super::html::{paragraph, table};
use crate::output::Outcome;
use crate::record::{AttemptEnd, Record};

pub(crate) fn happened(outcome: &Outcome<'_>) -> String {
    let record = outcome.record;
    let parts =
        [interruptions(record), hosts(record), migrations(outcome), failures(outcome), odd(record)];
    let text = parts.concat();
    if text.is_empty() { paragraph("Nothing out of the ordinary.") } else { text }
}

fn secs(at: Time) -> String {
    format!("{:.1} s", at.as_secs_f64())
}

fn span(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

/// Work lost by attempts that ended on `vm` between two times.
fn lost_on(record: &Record, vm: VmId, from: Time, until: Time) -> Span {
    let Some(history) = record.vms.get(&vm) else { return Span::ZERO };
    record
        .tasks
        .iter()
        .flat_map(|t| &t.attempts)
        .filter(|a| a.vm == vm)
        .filter(|a| a.ended.as_ref().is_some_and(|(at, _)| (from..=until).contains(at)))
        .map(|a| a.lost(history))
        .sum()
}

fn interruptions(record: &Record) -> String {
    if record.interruptions.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = record
        .interruptions
        .iter()
        .map(|i| {
            let action = match i.action {
                Action::Hibernate => "hibernate",
                Action::Resume => "resume",
                Action::Preempt => "preempt",
            };
            let target = match &i.target {
                Target::Type(kind) => format!("all spot {kind}"),
                Target::Vm(vm) => vm.to_string(),
            };
            let hit: Vec<_> = i.vms.iter().map(ToString::to_string).collect();
            let effect =
                i.vms.iter().filter_map(|&vm| took_effect(record, vm, i.action, i.asked)).max();
            let lost: Span = match i.action {
                Action::Resume => Span::ZERO,
                _ => i.vms.iter().map(|&vm| lost_after(record, vm, i.at)).sum(),
            };
            let none = "none: no such VM ran".to_owned();
            vec![
                action.to_owned(),
                target,
                if hit.is_empty() { none } else { hit.join(", ") },
                secs(i.asked),
                effect.map(secs).unwrap_or_default(),
                if hit.is_empty() { String::new() } else { span(lost) },
            ]
        })
        .collect();
    table(&["provider", "target", "hit", "asked for", "took effect", "work lost"], 3, &rows)
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
            let resumed = |h: &crate::record::Hibernation| h.resumed.filter(|r| r.0 == asked);
            vm.hibernations.iter().find_map(resumed).map(|(_, at)| at)
        }
        Action::Preempt => vm.ended.map(|(at, ..)| at),
    }
}

fn hosts(record: &Record) -> String {
    let rows: Vec<_> = record
        .hosts
        .iter()
        .filter_map(|(id, host)| {
            let (at, why) = host.lost.as_ref()?;
            let gone: Vec<_> = record
                .vms
                .values()
                .filter(|vm| vm.host == *id)
                .filter(|vm| vm.ended.is_some_and(|(_, end, _)| end == VmEnd::HostLost))
                .collect();
            let lost: Span = gone.iter().map(|vm| lost_on(record, vm.id, *at, *at)).sum();
            let names: Vec<_> = gone.iter().map(|vm| vm.id.to_string()).collect();
            Some(vec![
                format!("{id} ({})", host.name),
                why.clone(),
                names.join(", "),
                secs(*at),
                span(lost),
            ])
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&["host lost", "why", "VMs on it", "at", "work lost"], 3, &rows)
}

fn migrations(outcome: &Outcome<'_>) -> String {
    let (record, bag) = (outcome.record, &outcome.header.experiment.setup.bag);
    let mut rows = Vec::new();
    for (n, task) in record.tasks.iter().enumerate() {
        for pair in task.attempts.windows(2) {
            let [was, is] = pair else { continue };
            if is.reason != StartReason::Migrated {
                continue;
            }
            let name = bag.tasks.get(n).map(|t| t.name.clone()).unwrap_or_default();
            let lost = record.vms.get(&was.vm).map(|vm| was.lost(vm)).unwrap_or_default();
            rows.push((
                is.sent,
                vec![
                    format!("task{n} ({name})"),
                    was.vm.to_string(),
                    is.vm.to_string(),
                    was.ended.as_ref().map(|(at, _)| secs(*at)).unwrap_or_default(),
                    is.started.map(secs).unwrap_or_default(),
                    is.from.map_or("nothing".to_owned(), |(_, done)| done.to_string()),
                    span(lost),
                ],
            ));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|(at, _)| *at);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    table(
        &["migrated", "from", "to", "left at", "ran again at", "work kept", "work lost"],
        3,
        &rows,
    )
}

fn failures(outcome: &Outcome<'_>) -> String {
    let record = outcome.record;
    let mut rows = Vec::new();
    for (n, task) in record.tasks.iter().enumerate() {
        for attempt in &task.attempts {
            if let Some((at, AttemptEnd::Failed(why))) = &attempt.ended {
                let lost =
                    record.vms.get(&attempt.vm).map(|vm| attempt.lost(vm)).unwrap_or_default();
                rows.push(vec![
                    format!("task{n}"),
                    attempt.vm.to_string(),
                    why.clone(),
                    secs(*at),
                    span(lost),
                ]);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    table(&["attempt failed", "on", "why", "at", "work lost"], 3, &rows)
}

/// What should not have been.
fn odd(record: &Record) -> String {
    let mut text = String::new();
    if let Some(why) = &record.cancelled {
        text += &paragraph(&format!("The run was ended before its time: {why}."));
    }
    for (at, why) in &record.rejected {
        text +=
            &paragraph(&format!("A decision at {} could not be carried out: {why}.", secs(*at)));
    }
    text
}
