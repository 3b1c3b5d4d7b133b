//! A map of tasks to VMs, and its fitness kept up to date by moves.
//!
//! A move costs next to nothing: it only gives lower bounds of the ends of its two VMs. Nearly all
//! moves are rejected by these bounds; only for the others the VMs' ends are worked out.

use dormouse_units::Span;

use super::pool::{NEVER, Pool, positions};
use crate::packing::Packing;

/// A dollar in the unit of costs here, nano-dollars per hour × microseconds.
pub(crate) const DOLLAR: f64 = 1e9 * 3.6e9;

/// Scale on which solutions are compared (Eq. 1 and 8, normalised): the cost relative to that of
/// the initial solution or to a dollar, the makespan relative to `D_spot`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) alpha: f64,
    pub(crate) cost: f64,
    pub(crate) makespan: Span,
}

/// A solution: the allocation vector and, derived from it, per VM the set of its tasks, its last
/// end and its cost.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    vm_of: Vec<usize>,
    /// For each VM, a bit per position: set if the VM has that task.
    sets: Vec<u64>,
    words: usize,
    /// For each VM, the sum of the lengths of its tasks.
    work: Vec<Span>,
    /// For each VM, its last end, from its boot; for VMs in `rough`, a lower bound of it.
    ends: Vec<Span>,
    rough: Vec<usize>,
    /// Σ price × time used, in nano-dollars per hour × microseconds.
    cost: u128,
}

impl Solution {
    /// A solution without tasks: `place` each task before use, and then `work_out` the ends.
    pub(crate) fn new(pool: &Pool) -> Self {
        let words = pool.tasks.len().div_ceil(64);
        Self {
            vm_of: vec![usize::MAX; pool.tasks.len()],
            sets: vec![0; words * pool.candidates.len()],
            words,
            work: vec![Span::ZERO; pool.candidates.len()],
            rough: Vec::new(),
            ends: vec![Span::ZERO; pool.candidates.len()],
            cost: 0,
        }
    }

    /// Becomes a copy of another, without allocating.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.vm_of.copy_from_slice(&other.vm_of);
        self.sets.copy_from_slice(&other.sets);
        self.work.copy_from_slice(&other.work);
        self.ends.copy_from_slice(&other.ends);
        self.rough.clone_from(&other.rough);
        self.cost = other.cost;
    }

    /// Moves the task at `position` to `vm`. False, and nothing has changed, if it is there or
    /// can't run there.
    pub(crate) fn place(&mut self, pool: &Pool, position: usize, vm: usize) -> bool {
        let (from, length) = (self.vm_of[position], pool.length(vm, position));
        if from == vm || length == NEVER {
            return false;
        }
        let (word, bit) = (position / 64, 1_u64 << (position % 64));
        self.vm_of[position] = vm;
        if let Some(old) = self.sets.get_mut(from.saturating_mul(self.words).saturating_add(word)) {
            *old &= !bit;
            let shorter = pool.length(from, position);
            self.work[from] = self.work[from].saturating_sub(shorter);
            self.bound(pool, from, self.ends[from].saturating_sub(shorter));
        }
        self.sets[vm * self.words + word] |= bit;
        self.work[vm] += length;
        self.bound(pool, vm, self.ends[vm].max(length));
        true
    }

    /// Updates the bound of a VM that has got or lost a task. It is done no sooner than if its work
    /// were spread evenly; nor, where memory never binds, than `least`. There no vCPU, in the order
    /// in which they are free, is free sooner with one more task, and together they are busy longer
    /// by its length.
    fn bound(&mut self, pool: &Pool, vm: usize, least: Span) {
        let spread = pool.spread(vm, self.work[vm]);
        self.set_end(pool, vm, if pool.is_packed(vm) { spread } else { spread.max(least) });
        if !self.rough.contains(&vm) {
            self.rough.push(vm);
        }
    }

    /// Works out the end of one more VM of which only a bound is known; false if all ends are
    /// known.
    pub(crate) fn work_out(&mut self, pool: &Pool, packing: &mut Packing) -> bool {
        let Some(vm) = self.rough.pop() else { return false };
        let words = &self.sets[vm * self.words..][..self.words];
        let end = pool.last_end(packing, vm, words);
        self.set_end(pool, vm, end);
        true
    }

    fn set_end(&mut self, pool: &Pool, vm: usize, end: Span) {
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

    /// Cost of the solution, for a scale: at least one.
    #[expect(clippy::cast_precision_loss, reason = "a weight, not an amount")]
    pub(crate) fn cost(&self) -> f64 {
        self.cost.max(1) as f64
    }

    /// Fitness by Eq. 8; infinite if a VM is done later than its `latest`, from boot. For a
    /// solution that is not worked out it is a lower bound: it grows with cost and makespan, in
    /// floating point too.
    #[expect(clippy::cast_precision_loss, reason = "a weight, not an amount")]
    pub(crate) fn fitness(&self, pool: &Pool, scale: &Scale, latest: &[Span]) -> f64 {
        let (mut makespan, mut is_late) = (Span::ZERO, false);
        for (&end, &latest) in self.ends.iter().zip(latest) {
            makespan = makespan.max(end);
            is_late |= end > latest;
        }
        if is_late {
            return f64::INFINITY;
        }
        let makespan = (makespan + pool.boot()).as_micros() as f64;
        // Where the cost fits 64 bits, the processor has an instruction for the conversion.
        let cost = match u64::try_from(self.cost) {
            Ok(cost) => cost as f64,
            Err(_) => self.cost as f64,
        };
        scale.alpha * (cost / scale.cost)
            + (1.0 - scale.alpha) * (makespan / scale.makespan.as_micros().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fitness of a solution never falls while it is worked out, and ends at that of the same
    /// solution made from scratch.
    #[test]
    fn a_rough_solution_is_never_worse_than_it_is() {
        let mut random = dormouse_units::Stream::new(1, "test", 0);
        let scale = Scale { alpha: 0.5, cost: 100.0, makespan: Span::from_micros(100) };
        let mut packing = Packing::default();
        for _ in 0..50 {
            let pool = Pool::random(&mut random, &[1, 2, 2, 3, 4, 4], 70);
            let latest = [Span::from_micros(700); 6];
            let mut solution = Solution::new(&pool);
            for moved in 0..300 {
                solution.place(&pool, random.below(70), random.below(6));
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
                let mut anew = Solution::new(&pool);
                for (position, &vm) in solution.vm_of.iter().enumerate() {
                    if vm < 6 {
                        anew.place(&pool, position, vm);
                    }
                }
                while anew.work_out(&pool, &mut packing) {}
                assert_eq!((&anew.ends, anew.cost), (&solution.ends, solution.cost));
            }
        }
    }
}
