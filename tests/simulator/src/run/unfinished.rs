//! The unfinished part of a run that does not end, and what it waits for, by the durable log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use dormouse_engine::{Run, TaskRecord, TaskState};
use dormouse_model::{Event, Step};
use dormouse_units::{HostId, VmId};

/// The most tasks that are named; further ones are counted.
const NAMED: usize = 5;

/// The hosts of a run: the name of each one's worker session, and why it was lost if it was.
type Hosts<'a> = BTreeMap<HostId, (&'a str, Option<&'a str>)>;

/// The unfinished part of a run, in words; `steps` are those of its log.
pub(super) fn unfinished(run: Option<&Run>, steps: &[Step]) -> String {
    let Some(run) = run else { return "it has no header".to_owned() };
    let hosts = hosts(steps);
    let mut text = String::new();
    let tasks = (0_u32..).zip(run.tasks().iter());
    let left: Vec<_> = tasks.filter(|(_, task)| task.state != TaskState::Finished).collect();
    for (number, task) in left.iter().take(NAMED) {
        // Writing to a string never fails.
        let _ = write!(text, "task{number} {}; ", waits_for(run, &hosts, task));
    }
    let more = left.len().saturating_sub(NAMED);
    if more > 0 {
        let _ = write!(text, "{more} more tasks; ");
    }
    let alive: Vec<_> =
        run.provider().alive_vms().map(|(vm, _)| where_is(run, &hosts, vm)).collect();
    let there = hosts.iter().filter(|(_, (_, lost))| lost.is_none());
    let there: Vec<_> = there.map(|(host, (name, _))| format!("{host} ({name})")).collect();
    let _ = write!(text, "VMs: {alive:?}; hosts: {there:?}; ");
    match run.next_wakeup() {
        Some(at) => drop(write!(text, "it wakes at {at}")),
        None => text.push_str("it wakes for nothing"),
    }
    if run.is_stuck() {
        let _ = write!(text, "; nothing will ever happen again{}", run.why_stuck());
    }
    text
}

/// Whether the run waits for some attempt, and only for attempts at workers of these names.
pub(super) fn waits_only_for(
    workers: &BTreeSet<String>,
    run: Option<&Run>,
    steps: &[Step],
) -> bool {
    let Some(run) = run else { return false };
    let hosts = hosts(steps);
    let is_of_them = |vm: VmId| {
        let host = run.provider().find_vm(vm).and_then(|it| hosts.get(&it.host));
        let worker =
            host.filter(|(_, lost)| lost.is_none()).and_then(|(life, _)| life.split('@').next());
        worker.is_some_and(|worker| workers.contains(worker))
    };
    let mut attempts = run.tasks().iter().filter_map(|task| match task.state {
        TaskState::Sent(vm) | TaskState::Running(vm) | TaskState::Stopping(vm) => Some(vm),
        TaskState::Waiting | TaskState::Finished => None,
    });
    attempts.next().is_some_and(is_of_them) && attempts.all(is_of_them)
}

fn hosts(steps: &[Step]) -> Hosts<'_> {
    let mut hosts = Hosts::new();
    for step in steps {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                hosts.insert(*host, (name, None));
            }
            Event::HostLost { host, why, .. } => {
                if let Some((_, lost)) = hosts.get_mut(host) {
                    *lost = Some(why);
                }
            }
            _ => {}
        }
    }
    hosts
}

/// The event that a task waits for, in words.
fn waits_for(run: &Run, hosts: &Hosts<'_>, task: &TaskRecord) -> String {
    let attempt = task.attempt;
    match task.state {
        TaskState::Waiting if run.provider().alive_vms().next().is_none() => {
            "waits for a VM, and there is none".to_owned()
        }
        TaskState::Waiting => "waits for its scheduler to start it".to_owned(),
        TaskState::Sent(vm) => {
            format!("({attempt}) waits for its start on {}", where_is(run, hosts, vm))
        }
        TaskState::Running(vm) => {
            format!("({attempt}) waits for its end on {}", where_is(run, hosts, vm))
        }
        TaskState::Stopping(vm) => {
            format!("({attempt}) waits to be stopped on {}", where_is(run, hosts, vm))
        }
        TaskState::Finished => "is finished".to_owned(),
    }
}

fn where_is(run: &Run, hosts: &Hosts<'_>, vm: VmId) -> String {
    let Some(it) = run.provider().find_vm(vm) else { return format!("{vm}, which is not there") };
    let host = match hosts.get(&it.host) {
        Some((name, None)) => (*name).to_owned(),
        Some((name, Some(why))) => format!("{name}, lost: {why}"),
        None => "no part of the run".to_owned(),
    };
    format!("{vm} of {}, which is {}, on {} ({host})", it.kind, it.state, it.host)
}
