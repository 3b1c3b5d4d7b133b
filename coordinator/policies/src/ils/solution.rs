//! A map of tasks to VMs, and its fitness kept up to date by moves.
//!
//! A move costs next to nothing: it only gives lower bounds of the ends of its two VMs. Nearly all
//! moves are rejected by these bounds; only for the others the VMs' ends are worked out.

use dormouse_units::Span;

use super::pool::{NEVER, SearchPool, positions};
use crate::packing::VcpuPacking;

/// One dollar in the unit of costs of this module, nano-dollars per hour × microseconds.
pub(crate) const DOLLAR: f64 = 1e9 * 3.6e9;

/// Scale on which solutions are compared (Eq. 1 and 8, normalised): the cost relative to that of
/// the initial solution or to a dollar, the makespan relative to `D_spot`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitnessScale {
    pub(crate) alpha: f64,
    pub(crate) cost: f64,
    pub(crate) makespan: Span,
}

impl FitnessScale {
    /// Fitness by Eq. 8 of a solution of this cost, in nano-dollars per hour × microseconds, and this
    /// makespan. It grows with both, in floating point too.
    #[expect(clippy::cast_precision_loss, reason = "a weight, not an amount")]
    fn fitness(&self, cost: u128, makespan: Span) -> f64 {
        // Where the cost fits 64 bits, the processor has an instruction for the conversion.
        let cost = u64::try_from(cost).map_or_else(|_| wide_to_float(cost), |cost| cost as f64);
        let makespan = makespan.as_micros() as f64;
        self.alpha * (cost / self.cost)
            + (1.0 - self.alpha) * (makespan / self.makespan.as_micros().max(1) as f64)
    }

    /// The least end of a VM, counted from its boot, at which no solution that costs `least_cost` or more
    /// has a fitness below `fitness`.
    pub(crate) fn hopeless_end(&self, pool: &SearchPool, least_cost: u128, fitness: f64) -> Span {
        let is_hopeless = |end: u64| {
            self.fitness(least_cost, Span::from_micros(end) + pool.boot_time()) >= fitness
        };
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_hopeless(middle) { high = middle } else { low = middle + 1 }
        }
        Span::from_micros(low)
    }
}

/// Converts a number of more than 64 bits to floating point; a function of its own, as the conversion is
/// rare and slow.
#[cold]
#[inline(never)]
#[expect(clippy::cast_precision_loss, reason = "a weight, not an amount")]
fn wide_to_float(number: u128) -> f64 {
    number as f64
}

/// A solution: the allocation vector and, derived from it, per VM the set of its tasks, its last
/// end and its cost.
#[derive(Clone, Debug)]
pub(crate) struct TaskMap {
    /// VM of the task at each position; `u32::MAX`: none.
    vm_of: Vec<u32>,
    /// For each VM, a bit per position: set if the VM has that task.
    sets: Vec<u64>,
    words: usize,
    /// For each VM, the sum of the lengths of its tasks.
    work: Vec<Span>,
    /// When the last task of each VM ends, counted from the VM's boot; for VMs in `rough`, a lower bound of
    /// that.
    ends: Vec<Span>,
    rough: Vec<usize>,
    /// Σ price × time used, in nano-dollars per hour × microseconds.
    cost: u128,
}

impl TaskMap {
    /// A solution without tasks: `place_task` each task before use, and then `work_out` the ends.
    pub(crate) fn new(pool: &SearchPool) -> Self {
        let words = pool.tasks.len().div_ceil(64);
        Self {
            vm_of: vec![u32::MAX; pool.tasks.len()],
            sets: vec![0; words * pool.candidates.len()],
            words,
            work: vec![Span::ZERO; pool.candidates.len()],
            rough: Vec::new(),
            ends: vec![Span::ZERO; pool.candidates.len()],
            cost: 0,
        }
    }

    /// Copies another solution without allocating.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.vm_of.copy_from_slice(&other.vm_of);
        self.sets.copy_from_slice(&other.sets);
        self.work.copy_from_slice(&other.work);
        self.ends.copy_from_slice(&other.ends);
        self.rough.clone_from(&other.rough);
        self.cost = other.cost;
    }

    /// True if the task at `position` can be moved to `vm`: it can run there and isn't there already.
    pub(crate) fn can_place(&self, pool: &SearchPool, position: usize, vm: usize) -> bool {
        self.vm_of[position] as usize != vm && pool.task_length(vm, position) != NEVER
    }

    /// Moves the task at `position` to `vm`. Returns false, and changes nothing, if the task is on it already or can't
    /// run on it.
    pub(crate) fn place_task(&mut self, pool: &SearchPool, position: usize, vm: usize) -> bool {
        if !self.can_place(pool, position, vm) {
            return false;
        }
        let (from, length) = (self.vm_of[position] as usize, pool.task_length(vm, position));
        let (word, bit) = (position / 64, 1_u64 << (position % 64));
        self.mark_only(position, vm);
        if let Some(old) = self.sets.get_mut(from.saturating_mul(self.words).saturating_add(word)) {
            *old &= !bit;
            let shorter = pool.task_length(from, position);
            self.work[from] = self.work[from].saturating_sub(shorter);
            self.bound(pool, from, self.ends[from].saturating_sub(shorter));
        }
        self.sets[vm * self.words + word] |= bit;
        self.work[vm] += length;
        self.bound(pool, vm, self.ends[vm].max(length));
        true
    }

    /// Sets only the task's entry in the allocation vector. The solution is inconsistent
    /// afterwards, until another is copied into it.
    pub(crate) fn mark_only(&mut self, position: usize, vm: usize) {
        self.vm_of[position] = u32::try_from(vm).unwrap_or(u32::MAX);
    }

    /// Lower bound of the end of `vm`, counted from its boot, with its present tasks; with more tasks the
    /// VM ends no sooner.
    pub(crate) fn least_end(&self, vm: usize) -> Span {
        self.ends[vm]
    }

    /// Lower bound of the cost of the tasks that have a VM, whichever VMs they are on, in nano-dollars per hour ×
    /// microseconds.
    pub(crate) fn least_cost(&self, pool: &SearchPool) -> u128 {
        let placed = (0..self.vm_of.len()).filter(|position| self.vm_of[*position] != u32::MAX);
        placed.map(|position| pool.least_cost(position)).sum()
    }

    /// Updates the lower bound of the end of a VM that has got or lost a task. The VM ends no sooner than if its work were spread
    /// evenly over its vCPUs. Where memory never binds, it also ends no sooner than `least`: with one more task no vCPU is free
    /// sooner, and the total busy time is longer.
    fn bound(&mut self, pool: &SearchPool, vm: usize, least: Span) {
        let spread = pool.spread_time(vm, self.work[vm]);
        self.set_end(pool, vm, if pool.is_packed(vm) { spread } else { spread.max(least) });
        if !self.rough.contains(&vm) {
            self.rough.push(vm);
        }
    }

    /// Computes the exact end of one more VM whose end was only bounded; false if all ends are known.
    pub(crate) fn work_out(&mut self, pool: &SearchPool, packing: &mut VcpuPacking) -> bool {
        let Some(vm) = self.rough.pop() else { return false };
        let words = &self.sets[vm * self.words..][..self.words];
        let end = pool.last_end(packing, vm, words);
        self.set_end(pool, vm, end);
        true
    }

    fn set_end(&mut self, pool: &SearchPool, vm: usize, end: Span) {
        let price = u128::from(pool.candidates[vm].price);
        let cost = |span: Span| price * u128::from(span.as_micros());
        let before = std::mem::replace(&mut self.ends[vm], end);
        self.cost = match before < end {
            true => self.cost + cost(end.saturating_sub(before)),
            false => self.cost - cost(before.saturating_sub(end)),
        };
    }

    /// The positions of the tasks of a VM, ascending.
    pub(crate) fn positions(&self, vm: usize) -> impl Iterator<Item = usize> + use<'_> {
        positions(&self.sets[vm * self.words..][..self.words])
    }

    /// Cost of the solution as the unit of a `FitnessScale`, in nano-dollars per hour × microseconds; at
    /// least one.
    #[expect(clippy::cast_precision_loss, reason = "a weight, not an amount")]
    pub(crate) fn cost(&self) -> f64 {
        self.cost.max(1) as f64
    }

    /// Fitness by Eq. 8; infinite if a VM ends later than its entry in `latest`, counted from its boot. For
    /// a solution whose VM ends are not all computed, this is a lower bound: fitness grows with cost and
    /// makespan, in floating point too.
    pub(crate) fn fitness(&self, pool: &SearchPool, scale: &FitnessScale, latest: &[Span]) -> f64 {
        let (mut makespan, mut is_late) = (Span::ZERO, false);
        for (&end, &latest) in self.ends.iter().zip(latest) {
            makespan = makespan.max(end);
            is_late |= end > latest;
        }
        if is_late { f64::INFINITY } else { scale.fitness(self.cost, makespan + pool.boot_time()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fitness of a solution never falls while its VM ends are computed one by one, and finally equals
    /// that of the same solution made from scratch.
    #[test]
    fn a_rough_solution_is_never_worse_than_it_is() {
        let mut random = dormouse_units::RandomStream::new(1, "test", 0);
        let scale = FitnessScale { alpha: 0.5, cost: 100.0, makespan: Span::from_micros(100) };
        let mut packing = VcpuPacking::default();
        for _ in 0..50 {
            let pool = SearchPool::random_pool(&mut random, &[1, 2, 2, 3, 4, 4], 70);
            let latest = [Span::from_micros(700); 6];
            let mut solution = TaskMap::new(&pool);
            for moved in 0..300 {
                solution.place_task(&pool, random.draw_below(70), random.draw_below(6));
                if moved % 7 != 0 {
                    continue;
                }
                let mut before = 0.0;
                loop {
                    let fitness = solution.fitness(&pool, &scale, &latest);
                    assert!(fitness >= before, "{fitness} after {before}");
                    before = fitness;
                    if !solution.work_out(&pool, &mut packing) {
                        break;
                    }
                }
                let mut anew = TaskMap::new(&pool);
                for (position, &vm) in solution.vm_of.iter().enumerate() {
                    if vm < 6 {
                        anew.place_task(&pool, position, vm as usize);
                    }
                }
                while anew.work_out(&pool, &mut packing) {}
                assert_eq!((&anew.ends, anew.cost), (&solution.ends, solution.cost));
            }
        }
    }

    /// Once a VM ends too late for any solution of a given fitness, no further move to that VM makes a
    /// better solution, and no VM counts as too late before a move that does.
    #[test]
    fn what_is_given_up_never_gets_better() {
        let mut random = dormouse_units::RandomStream::new(2, "test", 0);
        let mut packing = VcpuPacking::default();
        let (mut given_up, mut not) = (0, 0);
        for n in 0..200 {
            let pool = SearchPool::random_pool(&mut random, &[1, 2, 2, 3, 4, 4], 70);
            // The makespan is what counts most: a destination that gets many tasks is soon done too late.
            let scale =
                FitnessScale { alpha: 0.5, cost: 50_000.0, makespan: Span::from_micros(200) };
            let mut start = TaskMap::new(&pool);
            for position in 0..70 {
                start.place_task(&pool, position, random.draw_below(6));
            }
            while start.work_out(&pool, &mut packing) {}
            let latest = [Span::from_micros(if n % 2 == 0 { 700 } else { 1_000_000 }); 6];
            let fitness = start.fitness(&pool, &scale, &[Span::from_micros(u64::MAX); 6]);
            let least_cost = start.least_cost(&pool);
            assert!(least_cost <= start.cost);
            let end = scale.hopeless_end(&pool, least_cost, fitness);
            let (destination, mut is_hopeless) = (random.draw_below(6), false);
            for _ in 0..20 {
                start.place_task(&pool, random.draw_below(70), destination);
                let least = start.least_end(destination);
                is_hopeless |= least >= end || least > latest[destination];
                let mut exact = start.clone();
                while exact.work_out(&pool, &mut packing) {}
                let is_better = exact.fitness(&pool, &scale, &latest) < fitness;
                assert!(!(is_hopeless && is_better));
                (given_up, not) = (given_up + u32::from(is_hopeless), not + u32::from(is_better));
            }
        }
        assert!(given_up > 200 && not > 200, "{given_up} given up, {not} better");
    }

    #[test]
    fn a_fitness_of_more_than_64_bits_grows_on() {
        let scale = FitnessScale { alpha: 0.5, cost: 1.0, makespan: Span::from_micros(1) };
        let of = |cost: u128| scale.fitness(cost, Span::ZERO);
        let edge = u128::from(u64::MAX);
        assert!(of(edge - 5_000) < of(edge) && of(edge) < of(edge + 5_000));
        assert_eq!(of(1 << 80), 0.5 * 2_f64.powi(80));
    }
}
