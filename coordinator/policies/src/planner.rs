//! Planning: from a bag and a catalogue to a plan, or to the reason why there is none.

use dormouse_cloud::{Catalogue, Market};
use dormouse_model::{Bag, CheckpointConfig};
use dormouse_units::{Span, Time};

use crate::assignment::{AssignedVm, TaskAssignment};
use crate::burst_allocation::burst_allocation;
use crate::packing::VcpuPacking;
use crate::problem::SchedulingProblem;
use crate::scheduler_input::SchedulerInput;
use crate::{BagSchedulerConfig, Plan, PlanError, Policy, feasibility, hads, ils};

/// The scheduler that `config` describes, with its primary schedule.
///
/// The same arguments always give the same scheduler. `checkpoints` says which checkpoints the
/// tasks are expected to take; estimated ends include their cost.
///
/// # Errors
///
/// See [`PlanError`].
pub fn build(
    config: &BagSchedulerConfig,
    catalogue: &Catalogue,
    bag: &Bag,
    checkpoints: &CheckpointConfig,
    seed: u64,
) -> Result<Box<dyn Policy>, PlanError> {
    let given = scheduler_input(config, catalogue, bag, checkpoints, seed)?;
    let plan = make_plan(&given)?;
    config.name.scheduling().build(given, plan)
}

/// The primary schedule with which the scheduler of `config` begins: a given plan, or one that the
/// scheduler makes. `None`: the scheduler has no plan and decides as it goes.
///
/// # Errors
///
/// See [`PlanError`].
pub fn plan(
    config: &BagSchedulerConfig,
    catalogue: &Catalogue,
    bag: &Bag,
    checkpoints: &CheckpointConfig,
    seed: u64,
) -> Result<Option<Plan>, PlanError> {
    make_plan(&scheduler_input(config, catalogue, bag, checkpoints, seed)?)
}

fn scheduler_input<'a>(
    config: &'a BagSchedulerConfig,
    catalogue: &'a Catalogue,
    bag: &'a Bag,
    checkpoints: &'a CheckpointConfig,
    seed: u64,
) -> Result<SchedulerInput<'a>, PlanError> {
    let problem = SchedulingProblem::new(catalogue, bag, checkpoints, config.time_allowances());
    config.check_ranges()?;
    Ok(SchedulerInput { config, problem, catalogue, checkpoints, bag, seed })
}

fn make_plan(given: &SchedulerInput<'_>) -> Result<Option<Plan>, PlanError> {
    let Some(plan) = &given.config.plan else { return given.config.name.scheduling().plan(given) };
    plan.check(given.catalogue, given.bag)?;
    Ok(Some(plan.clone()))
}

/// Selection of the papers' steps that make a primary schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrimarySchedule {
    /// Market in which the planned VMs are bought.
    pub(crate) market: Market,
    /// True if the ILS improves the greedy map (Algorithm 1, part 1).
    pub(crate) search: bool,
    /// True if the schedule has burstable VMs in addition to the others (Algorithm 1, part 2).
    pub(crate) burstable: bool,
}

/// Makes a primary schedule.
///
/// # Errors
///
/// See [`PlanError`].
pub(crate) fn primary_schedule(
    given: &SchedulerInput<'_>,
    how: PrimarySchedule,
) -> Result<Plan, PlanError> {
    let SchedulerInput { problem, .. } = given;
    feasibility::check_problem(given, how)?;
    match problem.first_wave() {
        None => planned_by(given, how, problem),
        Some(wave) => first_of_workflow(given, how, wave),
    }
}

/// The primary schedule of a workflow: it has only the tasks that can start at the beginning. The tasks
/// that follow these are placed as they come due.
fn first_of_workflow(
    given: &SchedulerInput<'_>,
    how: PrimarySchedule,
    mut wave: SchedulingProblem,
) -> Result<Plan, PlanError> {
    if wave.by_length().is_empty() {
        return Ok(Plan::unreckoned(given.config.name, Vec::new()));
    }
    // Where they can't leave so much time for what follows, they are done as soon as they can be.
    let soonest = earliest_map(&wave, how.market, wave.deadline).makespan(&wave);
    wave.deadline = wave.deadline.max(soonest);
    planned_by(given, how, &wave)
}

/// The primary schedule for `problem`, which is the given problem or only its tasks that can start at the
/// beginning.
fn planned_by(
    given: &SchedulerInput<'_>,
    how: PrimarySchedule,
    problem: &SchedulingProblem,
) -> Result<Plan, PlanError> {
    let SchedulerInput { config, seed, .. } = given;
    let market = how.market;
    let spot_limit = hads::spot_limit(problem, config.spot_limit);
    let limit = if market == Market::Spot { spot_limit } else { problem.deadline };
    let (mut map, homeless) = hads::greedy_map(problem, market, limit);
    if !homeless.is_empty() {
        map = earliest_map(problem, market, limit);
        if map.makespan(problem) > problem.deadline {
            let best = map.makespan(problem);
            let shortest = feasibility::bound_of(problem, how).earliest_end();
            return Err(PlanError::NoneFound { deadline: problem.deadline, best, shortest });
        }
    }
    let mut evaluations = 0;
    if how.search {
        let found = ils::improve_map(problem, config, market, &map, spot_limit, *seed);
        (map, evaluations) = (found.best, found.evaluations);
    }
    if how.burstable {
        map = burst_allocation(problem, map, config.burst_rate, spot_limit);
    }
    Ok(map.into_plan(problem, config.name, spot_limit, evaluations))
}

/// The map for bags for which the greedy map fails: every task goes to the VM that finishes it first, among
/// spot and on-demand VMs that finish it in time, else among all on-demand VMs.
fn earliest_map(problem: &SchedulingProblem, market: Market, limit: Span) -> TaskAssignment {
    let markets: &[Market] =
        if market == Market::Spot { &[Market::Spot, Market::OnDemand] } else { &[market] };
    let mut vms: Vec<(AssignedVm, VcpuPacking, Span)> = Vec::new();
    for &market in markets {
        let limit = if market == Market::Spot { limit } else { problem.deadline };
        for (id, kind) in problem.regular_types(market) {
            let ready = Time::ZERO + problem.boot;
            let packing = VcpuPacking::new(kind.vcpus, ready, kind.memory_limit);
            let n = kind.limit(market) as usize;
            vms.extend(std::iter::repeat_n((AssignedVm::new(id, market), packing, limit), n));
        }
    }
    let mut tasks = problem.by_memory();
    tasks.sort_by_key(|&t| std::cmp::Reverse(problem.longest_time(t)));
    for task in tasks {
        let memory = problem.task_memory(task);
        let end = |(vm, packing, limit): &(AssignedVm, VcpuPacking, Span)| {
            let end = packing.peek(problem.whole_time(task, vm.offer_of_vm())?, memory).end;
            Some((end > Time::ZERO + *limit, vm.market == Market::Spot, end))
        };
        // VMs that are in time come first; of the late ones, on-demand VMs.
        let key = |v: &(AssignedVm, VcpuPacking, Span)| {
            end(v).map_or((2, Time::ZERO), |(late, spot, end)| {
                (if late { 1 + u8::from(spot) } else { 0 }, end)
            })
        };
        if let Some((vm, packing, _)) = vms.iter_mut().min_by_key(|v| key(v))
            && let Some(length) = problem.whole_time(task, vm.offer_of_vm())
        {
            packing.push(length, memory);
            vm.tasks.push(task);
        }
    }
    TaskAssignment { vms: vms.into_iter().map(|v| v.0).filter(|vm| !vm.tasks.is_empty()).collect() }
}
