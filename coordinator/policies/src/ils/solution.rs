//! A map of tasks to VMs, and its fitness kept up to date by moves.

use dormouse_units::Span;

use super::pool::{NEVER, Pool, positions};
use crate::packing::Packing;

/// What makes solutions comparable (Eq. 1 and 8, normalised): the cost against the cost of the
/// initial solution, the makespan against `D_spot`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) alpha: f64,
    pub(crate) cost: u128,
    pub(crate) makespan: Span,
}

/// Latest ends, from boot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of VMs that may be taken away: `D_spot`, relaxed or not.
    pub(crate) spot: Span,
    /// Of the others: D.
    pub(crate) on_demand: Span,
}

/// A solution: the allocation vector and, derived from it, per VM the set of its tasks, its last
/// end and its cost.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    vm_of: Vec<usize>,
    /// Per VM, a bit for each position.
    sets: Vec<u64>,
    words: usize,
    ends: Vec<Span>,
    /// Σ price × time used, in nano-dollars per hour × microseconds.
    cost: u128,
}

impl Solution {
    /// No task anywhere; `place` each before use.
    pub(crate) fn new(pool: &Pool) -> Self {
        let words = pool.tasks.len().div_ceil(64);
        Self {
            vm_of: vec![usize::MAX; pool.tasks.len()],
            sets: vec![0; words * pool.candidates.len()],
            words,
            ends: vec![Span::ZERO; pool.candidates.len()],
            cost: 0,
        }
    }

    /// Becomes a copy of another, without allocating.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.vm_of.copy_from_slice(&other.vm_of);
        self.sets.copy_from_slice(&other.sets);
        self.ends.copy_from_slice(&other.ends);
        self.cost = other.cost;
    }

    /// Moves the task at `position` to `vm`. False, and nothing has changed, if it is there or
    /// can't run there.
    pub(crate) fn place(
        &mut self,
        pool: &Pool,
        packing: &mut Packing,
        position: usize,
        vm: usize,
    ) -> bool {
        let from = self.vm_of[position];
        if from == vm || pool.length(vm, position) == NEVER {
            return false;
        }
        let (word, bit) = (position / 64, 1_u64 << (position % 64));
        self.vm_of[position] = vm;
        self.sets[vm * self.words + word] |= bit;
        self.refresh(pool, packing, vm);
        if let Some(old) = self.sets.get_mut(from.saturating_mul(self.words).saturating_add(word)) {
            *old &= !bit;
            self.refresh(pool, packing, from);
        }
        true
    }

    fn refresh(&mut self, pool: &Pool, packing: &mut Packing, vm: usize) {
        let words = &self.sets[vm * self.words..][..self.words];
        let end = pool.last_end(packing, vm, words);
        let price = u128::from(pool.candidates[vm].price);
        let cost = |end: Span| price * u128::from(end.as_micros());
        self.cost = self.cost + cost(end) - cost(self.ends[vm]);
        self.ends[vm] = end;
    }

    /// The positions of the tasks of a VM, ascending.
    pub(crate) fn positions(&self, vm: usize) -> impl Iterator<Item = usize> + use<'_> {
        positions(&self.sets[vm * self.words..][..self.words])
    }

    pub(crate) const fn cost(&self) -> u128 {
        self.cost
    }

    /// Eq. 8; infinite if a VM is done too late.
    #[expect(clippy::cast_precision_loss, reason = "a weight, not an amount")]
    pub(crate) fn fitness(&self, pool: &Pool, scale: &Scale, limits: &Limits) -> f64 {
        let mut makespan = Span::ZERO;
        for (&end, candidate) in self.ends.iter().zip(&pool.candidates) {
            let spot = candidate.market == dormouse_cloud::Market::Spot;
            if end > if spot { limits.spot } else { limits.on_demand } {
                return f64::INFINITY;
            }
            makespan = makespan.max(end);
        }
        let makespan = (makespan + pool.boot()).as_micros() as f64;
        scale.alpha * (self.cost as f64 / scale.cost.max(1) as f64)
            + (1.0 - scale.alpha) * (makespan / scale.makespan.as_micros().max(1) as f64)
    }
}
