//! The iterated local search (Algorithm 1, part 1, and Algorithm 3).

use dormouse_cloud::Market;
use dormouse_units::RandomStream;
use dormouse_units::{Ppm, Span};

use super::pool::SearchPool;
use super::solution::{DOLLAR, FitnessScale, TaskMap};
use crate::assignment::{AssignedVm, TaskAssignment};
use crate::packing::VcpuPacking;
use crate::problem::SchedulingProblem;
use crate::{BagSchedulerConfig, CostScale, LocalSearchRule, RelaxRule};

/// Result of the ILS: the best assignment found.
pub(crate) struct SearchResult {
    pub(crate) best: TaskAssignment,
    /// Number of moves whose fitness was computed.
    pub(crate) evaluations: u64,
}

/// Input, limits and buffers of one search.
struct LocalSearch<'a> {
    config: &'a BagSchedulerConfig,
    pool: SearchPool,
    scale: FitnessScale,
    /// Lower bound of the cost of any solution, in nano-dollars per hour × microseconds.
    least_cost: u128,
    /// A fitness, and the end that a VM must stay below: if a VM ends at that time or later, no solution is
    /// better than the fitness.
    hopeless: (f64, Span),
    /// Number of moves in one attempt of the local search to improve a solution.
    moves: usize,
    random: RandomStream,
    packing: VcpuPacking,
    evaluations: u64,
}

/// Improves `initial` over the regular VMs of `market`.
///
/// The paper's text compares a local search's best solution under `D_spot`, and still expects solutions beyond `D_spot` (III-C,
/// burst allocation). Here solutions are accepted under the relaxed limit, and by fitness alone [choice].
pub(crate) fn improve_map(
    problem: &SchedulingProblem,
    config: &BagSchedulerConfig,
    market: Market,
    initial: &TaskAssignment,
    spot_limit: Span,
    seed: u64,
) -> SearchResult {
    let pool = SearchPool::new(problem, market, initial, config.search_limit);
    let mut packing = VcpuPacking::default();
    let mut start = TaskMap::new(&pool);
    let mut selected = pool.candidates_of(initial);
    for (vm, &candidate) in initial.vms.iter().zip(&selected) {
        for &task in &vm.tasks {
            if let Some(position) = pool.tasks.iter().position(|&t| t == task) {
                start.place_task(&pool, position, candidate);
            }
        }
    }
    while start.work_out(&pool, &mut packing) {}
    let mut unselected: Vec<usize> =
        (0..pool.candidates.len()).filter(|c| !selected.contains(c)).collect();
    let makespan = if spot_limit > problem.boot { spot_limit } else { problem.deadline };
    let cost = match config.cost_scale {
        CostScale::Initial => start.cost(),
        CostScale::Dollars => DOLLAR,
    };
    let scale = FitnessScale { alpha: config.alpha, cost, makespan };
    let mut search = LocalSearch {
        config,
        scale,
        least_cost: start.least_cost(&pool),
        hopeless: (f64::NAN, Span::ZERO),
        moves: moves_per_attempt(config.swap_rate, pool.tasks.len()),
        random: RandomStream::new(seed, "ils", 0),
        packing,
        evaluations: 0,
        pool,
    };

    // When each candidate has to be done, from its boot: spot VMs by `D_spot`, relaxed or not, the
    // others by D.
    let markets: Vec<Market> = search.pool.candidates.iter().map(|c| c.market).collect();
    let limits = |spot: Span| -> Vec<Span> {
        let by = |market: &Market| if *market == Market::Spot { spot } else { problem.deadline };
        markets.iter().map(|market| by(market).saturating_sub(problem.boot)).collect()
    };
    let mut best = start.clone();
    let mut current = start;
    let mut fitness = best.fitness(&search.pool, &search.scale, &limits(spot_limit));
    fitness = search.local_search(&mut best, &mut current, fitness, &selected, &limits(spot_limit));
    let mut relaxed = spot_limit;
    let mut last_best = 0;
    for i in 0..config.max_iteration {
        if !unselected.is_empty() {
            let chosen = search.random.draw_below(unselected.len());
            selected.push(unselected.swap_remove(chosen));
        }
        if i - last_best > config.max_failed {
            let more = Ppm::from_f64(config.relax_rate).unwrap_or(Ppm::ZERO);
            relaxed = (relaxed + relaxed.part(more)).min(problem.deadline);
        }
        let after =
            search.local_search(&mut best, &mut current, fitness, &selected, &limits(relaxed));
        if after < fitness {
            (fitness, last_best) = (after, i);
            if config.relax == RelaxRule::UntilImproved {
                relaxed = spot_limit;
            }
        }
    }
    SearchResult { best: search.to_assignment(&best), evaluations: search.evaluations }
}

/// Number of moves of an attempt: `swap_rate` × |B|, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a count of tasks"
)]
fn moves_per_attempt(swap_rate: f64, tasks: usize) -> usize {
    ((swap_rate * tasks as f64) as usize).max(1)
}

impl LocalSearch<'_> {
    /// Runs Algorithm 3: leaves the best solution found in `best` and returns its fitness; `scratch` is
    /// overwritten.
    ///
    /// All moves of an attempt go to one VM, which ends later with each move. Once that VM ends too late
    /// for any better solution, further moves to it are counted but not evaluated.
    fn local_search(
        &mut self,
        best: &mut TaskMap,
        scratch: &mut TaskMap,
        mut fitness: f64,
        selected: &[usize],
        latest: &[Span],
    ) -> f64 {
        let tasks = self.pool.tasks.len();
        let restart = self.config.local_search == LocalSearchRule::Restart;
        scratch.copy(best);
        let mut destination = selected[self.random.draw_below(selected.len())];
        let mut is_hopeless = false;
        let mut hopeless_end = self.hopeless_end(fitness);
        for attempt in 0..self.config.max_attempt {
            if restart && attempt > 0 {
                scratch.copy(best);
                destination = selected[self.random.draw_below(selected.len())];
                is_hopeless = false;
            }
            for _ in 0..self.moves {
                let position = self.random.draw_below(tasks);
                if is_hopeless {
                    if scratch.can_place(&self.pool, position, destination) {
                        self.evaluations += 1;
                        scratch.mark_only(position, destination);
                    }
                    continue;
                }
                if !scratch.place_task(&self.pool, position, destination) {
                    continue;
                }
                self.evaluations += 1;
                let end = scratch.least_end(destination);
                if end > latest[destination] || end >= hopeless_end {
                    is_hopeless = true;
                    continue;
                }
                // The solution is worked out only as far as needed to see that it is no better.
                loop {
                    let new = scratch.fitness(&self.pool, &self.scale, latest);
                    if new >= fitness {
                        break;
                    }
                    if !scratch.work_out(&self.pool, &mut self.packing) {
                        fitness = new;
                        hopeless_end = self.hopeless_end(fitness);
                        best.copy(scratch);
                        break;
                    }
                }
            }
        }
        fitness
    }

    /// The end that a VM must stay below, counted from its boot: if a VM ends then or later, no solution
    /// has a fitness below `fitness`.
    fn hopeless_end(&mut self, fitness: f64) -> Span {
        // Most searches find nothing better than the one before.
        if self.hopeless.0 != fitness {
            let end = self.scale.hopeless_end(&self.pool, self.least_cost, fitness);
            self.hopeless = (fitness, end);
        }
        self.hopeless.1
    }

    fn to_assignment(&self, solution: &TaskMap) -> TaskAssignment {
        let vms = self.pool.candidates.iter().enumerate().map(|(i, candidate)| AssignedVm {
            tasks: solution.positions(i).map(|p| self.pool.tasks[p]).collect(),
            ..AssignedVm::new(candidate.kind, candidate.market)
        });
        TaskAssignment { vms: vms.filter(|vm| !vm.tasks.is_empty()).collect() }
    }
}
