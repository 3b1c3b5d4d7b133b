//! Work of a rank: a chain of integer multiplications that can't be shortened while it runs but
//! whose result is known in closed form; and as many operations on memory, if the rank has any.

use std::hint::black_box;

use crate::digest::mix_bits;
use crate::trail::extend_lane;

/// Number of steps in a block, the unit of work of a parallel job, which takes about 50 µs.
const STEPS: u64 = 1 << 15;

/// Step from one value of a rank's chain of numbers to the next: Knuth's linear congruential generator modulo 2^64 (MMIX).
const STEP: AffineMap =
    AffineMap { factor: 6_364_136_223_846_793_005, offset: 1_442_695_040_888_963_407 };

/// Returns the start value of the chain of rank `rank` in the first phase.
pub(super) fn start_value(seed: u64, rank: usize) -> u64 {
    STEP.power(rank as u64 + 1).apply(seed)
}

/// Returns the start value of a rank's next phase, from the last results of the rank and of its neighbour.
pub(super) fn join_results(own: u64, neighbour: u64) -> u64 {
    own.wrapping_add(neighbour.rotate_left(17))
}

/// The chain of numbers that a rank computes in one phase, with a hash of every value of the chain so far, for which no closed form
/// is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockChain {
    /// Current value of the chain.
    pub(crate) state: u64,
    /// Hash of all values of the chain so far.
    pub(crate) trail: u64,
}

impl BlockChain {
    /// Makes the chain of a rank at the beginning of a phase, in a job with the nonce `nonce`.
    pub(super) fn new(state: u64, nonce: u64, (rank, phase): (usize, u32)) -> Self {
        let place = (rank as u64) << 32 | u64::from(phase);
        Self { state, trail: mix_bits(nonce ^ mix_bits(place)) }
    }

    fn do_step(&mut self) {
        self.state = STEP.apply(self.state);
        self.trail = extend_lane(self.trail, self.state);
    }

    /// Does a block of work without touching memory.
    pub(super) fn do_block(mut self) -> Self {
        for _ in 0..STEPS {
            self.do_step();
        }
        black_box(self)
    }
}

/// The memory that a rank works on block by block, as other programs use theirs.
pub(super) struct RankMemory {
    words: Vec<u64>,
    blocks: u64,
}

impl RankMemory {
    /// Allocates and fills `bytes` bytes, rounded down to words.
    pub(super) fn new(bytes: u64) -> Self {
        let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u64>();
        Self { words: (0..words).map(Self::first_word).collect(), blocks: 0 }
    }

    /// Returns the initial content of the word of memory at index `at`.
    fn first_word(at: usize) -> u64 {
        STEP.apply(at as u64)
    }

    /// Does a block of work on the chain, and one step on each word of the next part of the memory.
    pub(super) fn do_memory_block(&mut self, mut chain: BlockChain) -> BlockChain {
        let parts = self.memory_parts();
        if parts == 0 {
            return chain.do_block();
        }
        let begin = (self.blocks % parts * STEPS) as usize;
        let end = self.words.len().min(begin + STEPS as usize);
        self.blocks += 1;
        let part = &mut self.words[begin..end];
        for word in &mut *part {
            chain.do_step();
            *word = STEP.apply(*word);
        }
        for _ in part.len() as u64..STEPS {
            chain.do_step();
        }
        black_box(chain)
    }

    /// Returns the number of words of memory with a wrong value.
    pub(super) fn count_wrong(&self) -> u64 {
        let parts = self.memory_parts().max(1);
        let wrong = self.words.chunks(STEPS as usize).enumerate().map(|(part, words)| {
            let steps = self.blocks / parts + u64::from((part as u64) < self.blocks % parts);
            let right = STEP.power(steps);
            let first = part * STEPS as usize;
            let pairs = words.iter().enumerate();
            pairs.filter(|(at, word)| right.apply(Self::first_word(first + at)) != **word).count()
                as u64
        });
        wrong.sum()
    }

    fn memory_parts(&self) -> u64 {
        (self.words.len() as u64).div_ceil(STEPS)
    }
}

/// Returns the chain's value `blocks` blocks of work after `state`, by the closed form.
pub(super) fn chain_result(state: u64, blocks: u64) -> u64 {
    STEP.power(blocks.wrapping_mul(STEPS)).apply(state)
}

/// The map x → factor·x + offset modulo 2^64.
#[derive(Clone, Copy)]
struct AffineMap {
    factor: u64,
    offset: u64,
}

impl AffineMap {
    fn apply(self, x: u64) -> u64 {
        self.factor.wrapping_mul(x).wrapping_add(self.offset)
    }

    /// Returns the composition of two maps: first `self`, then `next`.
    fn and_then_map(self, next: Self) -> Self {
        Self { factor: next.factor.wrapping_mul(self.factor), offset: next.apply(self.offset) }
    }

    fn power(self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self { factor: 1, offset: 0 }, self);
        while exponent > 0 {
            if !exponent.is_multiple_of(2) {
                result = result.and_then_map(square);
            }
            square = square.and_then_map(square);
            exponent /= 2;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_what_the_work_comes_to() {
        let mut chain = BlockChain::new(start_value(7, 3), 1, (3, 0));
        let mut trails = Vec::new();
        for blocks in 0..5 {
            assert_eq!(chain_result(start_value(7, 3), blocks), chain.state, "{blocks} blocks");
            trails.push(chain.trail);
            chain = chain.do_block();
        }
        // The trail is another one for another nonce, rank or phase, though the chain is the same.
        for other in [(2, (3, 0)), (1, (2, 0)), (1, (3, 1))] {
            let mut chain = BlockChain::new(start_value(7, 3), other.0, other.1);
            for trail in &trails {
                assert_ne!(chain.trail, *trail, "{other:?}");
                chain = chain.do_block();
            }
        }
    }

    #[test]
    fn memory_is_worked_on_and_nothing_in_it_goes_wrong_unseen() {
        // Two parts and a bit.
        let mut memory = RankMemory::new(8 * (2 * STEPS + 100) + 7);
        assert_eq!(memory.words.len() as u64, 2 * STEPS + 100);
        let begun = BlockChain::new(5, 1, (0, 0));
        let (mut chain, mut without) = (begun, begun);
        for blocks in 1..=8 {
            (chain, without) = (memory.do_memory_block(chain), without.do_block());
            assert_eq!(
                (chain.state, memory.count_wrong()),
                (chain_result(5, blocks), 0),
                "{blocks} blocks"
            );
            assert_eq!(chain, without, "memory is beside it");
        }
        assert_ne!(memory.words[0], RankMemory::first_word(0));
        let last = memory.words.len() - 1;
        for at in [0, STEPS as usize, last] {
            memory.words[at] ^= 1 << 33;
        }
        assert_eq!(memory.count_wrong(), 3);
        memory.blocks += 1;
        assert_eq!(memory.count_wrong(), 2 + 100, "the last part was not worked on");
        assert_eq!(
            (RankMemory::new(0).do_memory_block(begun).state, RankMemory::new(0).count_wrong()),
            (chain_result(5, 1), 0)
        );
    }

    #[test]
    fn a_block_more_or_a_bit_flipped_is_another_result() {
        let right = chain_result(start_value(7, 3), 100);
        assert_ne!(right, chain_result(start_value(7, 3), 101));
        assert_ne!(right, chain_result(start_value(7, 3) ^ 1 << 40, 100));
        assert_ne!(start_value(7, 3), start_value(7, 4));
        assert_ne!(join_results(1, 2), join_results(2, 1));
    }
}
