//! Allocation of burstable VMs to a map (Burst-HADS Algorithm 1, part 2).

use dormouse_cloud::Market;
use dormouse_units::{Ppm, Span, TaskId, Time};

use crate::assignment::{AssignedVm, TaskAssignment};
use crate::problem::{KindId, SchedulingProblem};
use dormouse_units::Mode;

/// Adds ceil(`burst_rate` × spot VMs used) burstable VMs to a map: the cheapest types first, each up to its
/// limit.
///
/// Tasks that end after `spot_limit` on a spot VM move to burstable VMs in baseline mode, one task to each
/// VM. When all burstable VMs are taken, the tasks move to the cheapest regular on-demand VM. A burstable
/// VM that is left over takes the task that ends last of all. In a workflow that task must not be the only
/// one of its VM, because the tasks that follow it go to that VM. No task moves where it would end after
/// the deadline D; a burstable VM without a task stands by.
pub(crate) fn burst_allocation(
    problem: &SchedulingProblem,
    mut map: TaskAssignment,
    burst_rate: f64,
    spot_limit: Span,
) -> TaskAssignment {
    let spot_vms = map.vms.iter().filter(|vm| vm.market == Market::Spot).count();
    let mut free = burstable_types(problem, share(burst_rate, spot_vms));
    let mut burstable = Vec::new();
    let mut stuck = Vec::new();
    while let Some((from, task)) = last_ending_task(problem, &map, |vm, end, task| {
        vm.market == Market::Spot && end > Time::ZERO + spot_limit && !stuck.contains(&task)
    }) {
        let moved = if let Some(vm) = take_burstable(problem, &mut free, task) {
            burstable.push(vm);
            true
        } else {
            to_on_demand(problem, &mut map, task)
        };
        if moved {
            map.vms[from].tasks.retain(|&t| t != task);
        } else {
            stuck.push(task);
        }
    }
    let mut passed_over = Vec::new();
    let least = if problem.to_come() > 0 { 2 } else { 1 };
    while !free.is_empty() {
        let Some((from, task)) = last_ending_task(problem, &map, |vm, _, task| {
            vm.tasks.len() >= least && !passed_over.contains(&task)
        }) else {
            break;
        };
        if let Some(vm) = take_burstable(problem, &mut free, task) {
            burstable.push(vm);
            map.vms[from].tasks.retain(|&t| t != task);
        } else {
            passed_over.push(task);
        }
    }
    burstable.extend(free.into_iter().map(|kind| AssignedVm::new(kind, Market::OnDemand)));
    map.vms.retain(|vm| !vm.tasks.is_empty());
    map.vms.extend(burstable);
    map
}

/// Rounds the share `rate` (from 0) of `n` VMs up to whole VMs; products that are whole but for rounding errors stay
/// as they are.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a count of VMs"
)]
fn share(rate: f64, n: usize) -> usize {
    // A rate like .2 is a little more than .2 in floating point: 5 × .2 has to be 1.
    (rate * n as f64 - 1e-9).ceil().max(0.0) as usize
}

/// The types of `n` burstable VMs, the cheapest first.
fn burstable_types(problem: &SchedulingProblem, n: usize) -> Vec<KindId> {
    let mut kinds: Vec<_> = problem.burstable_types().collect();
    kinds.sort_by_key(|(id, kind)| (kind.price(Market::OnDemand), *id));
    kinds
        .into_iter()
        .flat_map(|(id, kind)| std::iter::repeat_n(id, kind.limit(Market::OnDemand) as usize))
        .take(n)
        .collect()
}

/// Among the tasks for which `qualifies` holds, finds the task that ends last, and returns it after the
/// index of its VM. Of several such tasks the shortest is taken, which loses least in baseline mode.
fn last_ending_task(
    problem: &SchedulingProblem,
    map: &TaskAssignment,
    qualifies: impl Fn(&AssignedVm, Time, TaskId) -> bool,
) -> Option<(usize, TaskId)> {
    let mut all = Vec::new();
    for (i, vm) in map.vms.iter().enumerate() {
        for (&task, slot) in vm.tasks.iter().zip(vm.task_slots(problem)) {
            if qualifies(vm, slot.end, task) {
                all.push((slot.end, std::cmp::Reverse((problem.longest_time(task), task)), i));
            }
        }
    }
    all.into_iter().max().map(|(_, std::cmp::Reverse((_, task)), i)| (i, task))
}

/// Puts the task on a new burstable VM that can run it in baseline mode by the deadline D. The VM has the first suitable type in
/// `free`, which is removed from there; `None` if no type is suitable.
fn take_burstable(
    problem: &SchedulingProblem,
    free: &mut Vec<KindId>,
    task: TaskId,
) -> Option<AssignedVm> {
    let fits = |&kind: &KindId| {
        let speed = problem.kinds[kind].baseline();
        let length = problem.remaining_time(task, (kind, Market::OnDemand), Ppm::ZERO, speed);
        length.is_some_and(|length| problem.boot + length <= problem.deadline)
    };
    let chosen = free.iter().position(fits)?;
    let kind = free.remove(chosen);
    Some(AssignedVm {
        mode: Mode::Baseline,
        tasks: vec![task],
        ..AssignedVm::new(kind, Market::OnDemand)
    })
}

/// Puts the task on the cheapest regular on-demand VM, in the map or new, that finishes it by D; false if no VM does.
fn to_on_demand(problem: &SchedulingProblem, map: &mut TaskAssignment, task: TaskId) -> bool {
    let on_demand = |kind: KindId| AssignedVm::new(kind, Market::OnDemand);
    let mut options: Vec<(Option<usize>, AssignedVm)> = Vec::new();
    for (id, kind) in problem.regular_types(Market::OnDemand) {
        let alike = |vm: &AssignedVm| vm.kind == id && vm.market == Market::OnDemand;
        let used = map.vms.iter().enumerate().filter(|(_, vm)| alike(vm));
        options.extend(used.clone().map(|(i, vm)| (Some(i), vm.clone())));
        if used.count() < kind.limit(Market::OnDemand) as usize {
            options.push((None, on_demand(id)));
        }
    }
    options.sort_by_key(|(i, vm)| (problem.kinds[vm.kind].price(vm.market), i.is_none(), *i));
    for (index, mut vm) in options {
        if !problem.runs_on(task, vm.kind) {
            continue;
        }
        vm.tasks.push(task);
        if vm.last_end(problem) <= Time::ZERO + problem.deadline {
            match index {
                Some(i) => map.vms[i] = vm,
                None => map.vms.push(vm),
            }
            return true;
        }
    }
    false
}
