//! The ends of the tasks of VMs, and those that are too late for it to be safe.

use dormouse_cloud::Market;
use dormouse_units::{Span, TaskId, Time};

use super::floor::Floor;
use super::machine::{Machine, Phase};

pub(crate) fn is_hibernated(machine: &Machine) -> bool {
    matches!(machine.phase, Phase::Hibernated { .. })
}

pub(crate) fn is_busy_spot(machine: &Machine) -> bool {
    machine.market == Market::Spot && machine.takes_work() && machine.has_work()
}

/// The tasks of a running spot VM that end too late for it to be safe (see [`Floor::safe`]).
pub(crate) fn late_tasks(floor: &Floor, now: Time, machine: &Machine) -> Vec<TaskId> {
    if !is_busy_spot(machine) {
        return Vec::new();
    }
    late_among(floor, machine, &ends(floor, now, machine))
}

/// The tasks of a running spot VM that end too late, of all its tasks as [`ends`] has them.
pub(crate) fn late_among(
    floor: &Floor,
    machine: &Machine,
    ends: &[(TaskId, Time, Time)],
) -> Vec<TaskId> {
    let longest = machine.tasks().map(|t| floor.problem.longest(t)).max().unwrap_or(Span::ZERO);
    let is_late = |task, end| end > floor.limit(task) - (longest + floor.problem.takeover_boot);
    let late = ends.iter().filter(|&&(task, end, _)| is_late(task, end));
    late.map(|&(task, ..)| task).collect()
}

/// The tasks of a VM, each with its end and its start; the start of a running task is zero.
pub(crate) fn ends(floor: &Floor, now: Time, machine: &Machine) -> Vec<(TaskId, Time, Time)> {
    let mut packing = floor.running_only(now, machine);
    let running = machine.running.iter().map(|r| (r.task, r.ends, Time::ZERO));
    let mut tasks: Vec<_> = running.collect();
    for q in &machine.queue {
        if let Some(length) = floor.remaining(q.task, machine.offer(), q.mode) {
            let slot = packing.push(length, floor.problem.memory(q.task));
            tasks.push((q.task, slot.end, slot.start));
        }
    }
    tasks
}
