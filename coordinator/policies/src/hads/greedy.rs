//! The greedy initial map (Burst-HADS Algorithm 2).

use dormouse_cloud::Market;
use dormouse_units::{Span, TaskId, Time};

use super::round_robin::RoundRobin;
use crate::assignment::{AssignedVm, TaskAssignment};
use crate::packing::VcpuPacking;
use crate::problem::SchedulingProblem;

/// A VM of the greedy map that may get further tasks.
struct OpenVm {
    vm: AssignedVm,
    packing: VcpuPacking,
}

/// The greedy map: takes tasks by descending memory, and puts each on the cheapest selected VM that
/// finishes it in time, else on a new VM that weighted round-robin picks. Spot VMs must finish by
/// `spot_limit`.
///
/// The text does not say what becomes of a task that no VM of `market` can finish in time. Here such a task
/// goes to a new regular on-demand VM that finishes it by D (the stored plan of ED200 has one) [choice].
/// Tasks that no on-demand VM can finish in time either are returned.
pub(crate) fn greedy_map(
    problem: &SchedulingProblem,
    market: Market,
    spot_limit: Span,
) -> (TaskAssignment, Vec<TaskId>) {
    let mut open: Vec<OpenVm> = Vec::new();
    let mut homeless = Vec::new();
    let mut turns = RoundRobin::new(problem, market);
    let mut reserve = RoundRobin::new(problem, Market::OnDemand);
    for task in problem.by_memory() {
        let placed = place_in_selected(problem, &mut open, task, spot_limit)
            || place_in_new(problem, &mut open, &mut turns, task, spot_limit)
            || (market == Market::Spot
                && place_in_new(problem, &mut open, &mut reserve, task, problem.deadline));
        if !placed {
            homeless.push(task);
        }
    }
    (TaskAssignment { vms: open.into_iter().map(|o| o.vm).collect() }, homeless)
}

/// Phase 1: puts the task on an already selected VM, trying the cheapest first.
fn place_in_selected(
    problem: &SchedulingProblem,
    open: &mut [OpenVm],
    task: TaskId,
    spot_limit: Span,
) -> bool {
    let price = |vm: &AssignedVm| problem.kinds[vm.kind].price(vm.market);
    let mut order: Vec<usize> = (0..open.len()).collect();
    order.sort_by_key(|&i| price(&open[i].vm));
    let by =
        |vm: &AssignedVm| if vm.market == Market::Spot { spot_limit } else { problem.deadline };
    order.into_iter().any(|i| {
        let limit = by(&open[i].vm);
        put_if_in_time(problem, &mut open[i], task, limit)
    })
}

/// Phase 2: puts the task on a new VM, in the order of weighted round-robin.
fn place_in_new(
    problem: &SchedulingProblem,
    open: &mut Vec<OpenVm>,
    turns: &mut RoundRobin,
    task: TaskId,
    limit: Span,
) -> bool {
    for kind in turns.candidate_types() {
        let offer = &problem.kinds[kind];
        let ready = Time::ZERO + problem.boot;
        let mut new = OpenVm {
            vm: AssignedVm::new(kind, turns.market()),
            packing: VcpuPacking::new(offer.vcpus, ready, offer.memory_limit),
        };
        if put_if_in_time(problem, &mut new, task, limit) {
            turns.take_type(kind);
            open.push(new);
            return true;
        }
    }
    false
}

/// Puts the task on the VM if it ends there by `limit`, and returns true if so (`check_schedule` and
/// `schedule` of the authors' code).
fn put_if_in_time(
    problem: &SchedulingProblem,
    open: &mut OpenVm,
    task: TaskId,
    limit: Span,
) -> bool {
    let Some(length) = problem.whole_time(task, open.vm.offer_of_vm()) else { return false };
    let memory = problem.task_memory(task);
    if open.packing.peek(length, memory).end > Time::ZERO + limit {
        return false;
    }
    open.packing.push(length, memory);
    open.vm.tasks.push(task);
    true
}
