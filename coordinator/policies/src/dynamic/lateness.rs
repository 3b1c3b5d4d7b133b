//! Expected ends of tasks, and the tasks that end too late to survive another hibernation.

use dormouse_cloud::Market;
use dormouse_units::{Span, TaskId, Time};

use super::cluster_view::ClusterView;
use super::scheduled_vm::{ScheduledVm, VmPhase};

pub(crate) fn is_hibernated(machine: &ScheduledVm) -> bool {
    matches!(machine.phase, VmPhase::Hibernated { .. })
}

pub(crate) fn is_busy_spot(machine: &ScheduledVm) -> bool {
    machine.market == Market::Spot && machine.takes_work() && machine.has_work()
}

/// The tasks of a running spot VM that end too late to survive a hibernation (see
/// [`ClusterView::is_safe`]).
pub(crate) fn late_tasks(view: &ClusterView, now: Time, machine: &ScheduledVm) -> Vec<TaskId> {
    if !is_busy_spot(machine) {
        return Vec::new();
    }
    late_among(view, machine, &task_ends(view, now, machine))
}

/// The tasks of a running spot VM that end too late, given all its tasks with their ends from
/// [`task_ends`].
pub(crate) fn late_among(
    view: &ClusterView,
    machine: &ScheduledVm,
    ends: &[(TaskId, Time, Time)],
) -> Vec<TaskId> {
    let longest =
        machine.all_tasks().map(|t| view.problem.longest_time(t)).max().unwrap_or(Span::ZERO);
    let is_late = |task, end| end > view.latest_end(task) - (longest + view.problem.takeover_boot);
    let late = ends.iter().filter(|&&(task, end, _)| is_late(task, end));
    late.map(|&(task, ..)| task).collect()
}

/// The tasks of a VM, each with its expected end and start; the start of a running task is zero.
pub(crate) fn task_ends(
    view: &ClusterView,
    now: Time,
    machine: &ScheduledVm,
) -> Vec<(TaskId, Time, Time)> {
    let mut packing = view.running_only(now, machine);
    let running = machine.running.iter().map(|r| (r.task, r.ends, Time::ZERO));
    let mut tasks: Vec<_> = running.collect();
    for q in &machine.queue {
        if let Some(length) = view.remaining_time(q.task, machine.offer_of_vm(), q.mode) {
            let slot = packing.push(length, view.problem.task_memory(q.task));
            tasks.push((q.task, slot.end, slot.start));
        }
    }
    tasks
}
