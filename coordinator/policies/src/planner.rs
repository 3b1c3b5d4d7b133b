//! From a bag and a catalogue to a plan, or to the reason why there is none.

use dormouse_cloud::{Catalogue, Market};
use dormouse_units::{Span, TaskId, Time};

use crate::assignment::{Assignment, Vm};
use crate::burst_allocation::burst_allocation;
use crate::packing::Packing;
use crate::problem::{KindId, Problem};
use crate::{
    Bag, BagSchedulerConfig, BagSchedulerName, CheckpointConfig, Plan, PlanError, feasibility,
    hads, ils,
};

/// Makes the primary schedule of `config.name`, or checks the one in `config.plan`.
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
) -> Result<Plan, PlanError> {
    let problem = Problem::new(catalogue, bag, checkpoints, config.restore, config.margin);
    make(config, &problem, catalogue, bag, seed)
}

/// As [`plan`], for a problem already made.
pub(crate) fn make(
    config: &BagSchedulerConfig,
    problem: &Problem,
    catalogue: &Catalogue,
    bag: &Bag,
    seed: u64,
) -> Result<Plan, PlanError> {
    config.check()?;
    if let Some(given) = &config.plan {
        given.check(catalogue, bag)?;
        return Ok(given.clone());
    }
    feasibility::check(config, problem, catalogue, bag)?;
    let spot_limit = hads::spot_limit(problem, config.spot_limit);
    let market = match config.name {
        BagSchedulerName::BurstHads | BagSchedulerName::Hads => Market::Spot,
        BagSchedulerName::IlsOnDemand => Market::OnDemand,
        BagSchedulerName::Fifo => {
            return Ok(in_order(problem, config).into_plan(problem, config.name, spot_limit, 0));
        }
    };
    let limit = if market == Market::Spot { spot_limit } else { problem.deadline };
    let (mut map, homeless) = hads::greedy(problem, market, limit);
    if !homeless.is_empty() {
        map = earliest(problem, market, limit);
        if map.makespan(problem) > problem.deadline {
            let best = map.makespan(problem);
            let shortest = feasibility::bound(problem, config.name).end();
            return Err(PlanError::NoneFound { deadline: problem.deadline, best, shortest });
        }
    }
    let mut evaluations = 0;
    if config.name != BagSchedulerName::Hads {
        let found = ils::iterate(problem, config, market, &map, spot_limit, seed);
        (map, evaluations) = (found.best, found.evaluations);
    }
    if config.name == BagSchedulerName::BurstHads {
        map = burst_allocation(problem, map, config.burst_rate, spot_limit);
    }
    Ok(map.into_plan(problem, config.name, spot_limit, evaluations))
}

/// Where the greedy map fails: every task on whichever VM is done with it first among those that
/// are done in time, spot or not, else first among all that stay.
fn earliest(problem: &Problem, market: Market, limit: Span) -> Assignment {
    let markets: &[Market] =
        if market == Market::Spot { &[Market::Spot, Market::OnDemand] } else { &[market] };
    let mut vms: Vec<(Vm, Packing, Span)> = Vec::new();
    for &market in markets {
        let limit = if market == Market::Spot { limit } else { problem.deadline };
        for (id, kind) in problem.regular(market) {
            let ready = Time::ZERO + problem.boot;
            let packing = Packing::new(kind.vcpus, ready, kind.memory_limit);
            let n = kind.limit(market) as usize;
            vms.extend(std::iter::repeat_n((Vm::new(id, market), packing, limit), n));
        }
    }
    let mut tasks = problem.by_memory();
    tasks.sort_by_key(|&t| std::cmp::Reverse(problem.longest(t)));
    for task in tasks {
        let memory = problem.memory(task);
        let end = |(vm, packing, limit): &(Vm, Packing, Span)| {
            let end = packing.peek(problem.whole(task, vm.kind)?, memory).end;
            Some((end > Time::ZERO + *limit, vm.market == Market::Spot, end))
        };
        // In time first; of the late ones those that stay.
        let key = |v: &(Vm, Packing, Span)| {
            end(v).map_or((2, Time::ZERO), |(late, spot, end)| {
                (if late { 1 + u8::from(spot) } else { 0 }, end)
            })
        };
        if let Some((vm, packing, _)) = vms.iter_mut().min_by_key(|v| key(v))
            && let Some(length) = problem.whole(task, vm.kind)
        {
            packing.push(length, memory);
            vm.tasks.push(task);
        }
    }
    Assignment { vms: vms.into_iter().map(|v| v.0).filter(|vm| !vm.tasks.is_empty()).collect() }
}

/// What `fifo` comes to: each task, in the order of the bag, on the VM that can start it first.
fn in_order(problem: &Problem, config: &BagSchedulerConfig) -> Assignment {
    let ready = Time::ZERO + problem.boot;
    let mut vms: Vec<(Vm, Packing)> = Vec::new();
    for fleet in &config.fleet {
        let found: Option<KindId> = problem.kinds.iter().position(|k| k.name == fleet.kind);
        if let Some(id) = found {
            let kind = &problem.kinds[id];
            let packing = Packing::new(kind.vcpus, ready, kind.memory_limit);
            let n = fleet.count as usize;
            vms.extend(std::iter::repeat_n((Vm::new(id, fleet.market), packing), n));
        }
    }
    for task in (0_u32..).take(problem.tasks()).map(TaskId::new) {
        let memory = problem.memory(task);
        let able = vms.iter_mut().filter_map(|(vm, packing)| {
            let length = problem.whole(task, vm.kind)?;
            Some((packing.peek(length, memory).start, length, vm, packing))
        });
        if let Some((_, length, vm, packing)) = able.min_by_key(|(start, ..)| *start) {
            packing.push(length, memory);
            vm.tasks.push(task);
        }
    }
    Assignment { vms: vms.into_iter().map(|v| v.0).collect() }
}
