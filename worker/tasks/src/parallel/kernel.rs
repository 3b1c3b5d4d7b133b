//! The work of a rank: a chain of integer multiplications, which nobody can shorten while
//! doing it, and whose end is nevertheless known in closed form; and as many beside it on
//! words of memory, if the rank has any.

use std::hint::black_box;

use crate::digest::mix;
use crate::trail::through;

/// Steps in a block, which is the unit of work: about 50 µs.
const STEPS: u64 = 1 << 15;

/// Knuth's linear congruential generator modulo 2^64 (MMIX).
const STEP: Affine =
    Affine { factor: 6_364_136_223_846_793_005, offset: 1_442_695_040_888_963_407 };

/// The value that rank `rank` starts from.
pub(super) fn start(seed: u64, rank: usize) -> u64 {
    STEP.power(rank as u64 + 1).apply(seed)
}

/// The value that a rank goes on from, given its own and its neighbour's last results.
pub(super) fn join(own: u64, neighbour: u64) -> u64 {
    own.wrapping_add(neighbour.rotate_left(17))
}

/// The chain of a rank in one phase, and the trail of it: a number that goes through every value of the chain, of which no
/// closed form is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockChain {
    /// The value that the chain is at.
    pub(crate) state: u64,
    /// The number that went through all values before.
    pub(crate) trail: u64,
}

impl BlockChain {
    /// A chain at its beginning, of a rank in a phase of a job with this nonce.
    pub(super) fn new(state: u64, nonce: u64, (rank, phase): (usize, u32)) -> Self {
        let place = (rank as u64) << 32 | u64::from(phase);
        Self { state, trail: mix(nonce ^ mix(place)) }
    }

    fn step(&mut self) {
        self.state = STEP.apply(self.state);
        self.trail = through(self.trail, self.state);
    }

    /// Does a block of work without memory.
    pub(super) fn block(mut self) -> Self {
        for _ in 0..STEPS {
            self.step();
        }
        black_box(self)
    }
}

/// The memory that a rank works on, as other programs work on theirs: block by block all over.
pub(super) struct Memory {
    words: Vec<u64>,
    blocks: u64,
}

impl Memory {
    /// Fills so many bytes, rounded down to words.
    pub(super) fn new(bytes: u64) -> Self {
        let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u64>();
        Self { words: (0..words).map(Self::first).collect(), blocks: 0 }
    }

    /// The content of a word at first.
    fn first(at: usize) -> u64 {
        STEP.apply(at as u64)
    }

    /// Does a block of work, and a step on each word of the next part of the memory.
    pub(super) fn block(&mut self, mut chain: BlockChain) -> BlockChain {
        let parts = self.parts();
        if parts == 0 {
            return chain.block();
        }
        let begin = (self.blocks % parts * STEPS) as usize;
        let end = self.words.len().min(begin + STEPS as usize);
        self.blocks += 1;
        let part = &mut self.words[begin..end];
        for word in &mut *part {
            chain.step();
            *word = STEP.apply(*word);
        }
        for _ in part.len() as u64..STEPS {
            chain.step();
        }
        black_box(chain)
    }

    /// The number of words that are not what they should be.
    pub(super) fn wrong(&self) -> u64 {
        let parts = self.parts().max(1);
        let wrong = self.words.chunks(STEPS as usize).enumerate().map(|(part, words)| {
            let steps = self.blocks / parts + u64::from((part as u64) < self.blocks % parts);
            let right = STEP.power(steps);
            let first = part * STEPS as usize;
            let pairs = words.iter().enumerate();
            pairs.filter(|(at, word)| right.apply(Self::first(first + at)) != **word).count() as u64
        });
        wrong.sum()
    }

    fn parts(&self) -> u64 {
        (self.words.len() as u64).div_ceil(STEPS)
    }
}

/// The result of `blocks` blocks of work from `state`, without doing them.
pub(super) fn result(state: u64, blocks: u64) -> u64 {
    STEP.power(blocks.wrapping_mul(STEPS)).apply(state)
}

/// x → factor·x + offset modulo 2^64.
#[derive(Clone, Copy)]
struct Affine {
    factor: u64,
    offset: u64,
}

impl Affine {
    fn apply(self, x: u64) -> u64 {
        self.factor.wrapping_mul(x).wrapping_add(self.offset)
    }

    /// First `self`, then `next`.
    fn then(self, next: Self) -> Self {
        Self { factor: next.factor.wrapping_mul(self.factor), offset: next.apply(self.offset) }
    }

    fn power(self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self { factor: 1, offset: 0 }, self);
        while exponent > 0 {
            if !exponent.is_multiple_of(2) {
                result = result.then(square);
            }
            square = square.then(square);
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
        let mut chain = BlockChain::new(start(7, 3), 1, (3, 0));
        let mut trails = Vec::new();
        for blocks in 0..5 {
            assert_eq!(result(start(7, 3), blocks), chain.state, "{blocks} blocks");
            trails.push(chain.trail);
            chain = chain.block();
        }
        // The trail is another one for another nonce, rank or phase, though the chain is the same.
        for other in [(2, (3, 0)), (1, (2, 0)), (1, (3, 1))] {
            let mut chain = BlockChain::new(start(7, 3), other.0, other.1);
            for trail in &trails {
                assert_ne!(chain.trail, *trail, "{other:?}");
                chain = chain.block();
            }
        }
    }

    #[test]
    fn memory_is_worked_on_and_nothing_in_it_goes_wrong_unseen() {
        // Two parts and a bit.
        let mut memory = Memory::new(8 * (2 * STEPS + 100) + 7);
        assert_eq!(memory.words.len() as u64, 2 * STEPS + 100);
        let begun = BlockChain::new(5, 1, (0, 0));
        let (mut chain, mut without) = (begun, begun);
        for blocks in 1..=8 {
            (chain, without) = (memory.block(chain), without.block());
            assert_eq!((chain.state, memory.wrong()), (result(5, blocks), 0), "{blocks} blocks");
            assert_eq!(chain, without, "memory is beside it");
        }
        assert_ne!(memory.words[0], Memory::first(0));
        let last = memory.words.len() - 1;
        for at in [0, STEPS as usize, last] {
            memory.words[at] ^= 1 << 33;
        }
        assert_eq!(memory.wrong(), 3);
        memory.blocks += 1;
        assert_eq!(memory.wrong(), 2 + 100, "the last part was not worked on");
        assert_eq!((Memory::new(0).block(begun).state, Memory::new(0).wrong()), (result(5, 1), 0));
    }

    #[test]
    fn a_block_more_or_a_bit_flipped_is_another_result() {
        let right = result(start(7, 3), 100);
        assert_ne!(right, result(start(7, 3), 101));
        assert_ne!(right, result(start(7, 3) ^ 1 << 40, 100));
        assert_ne!(start(7, 3), start(7, 4));
        assert_ne!(join(1, 2), join(2, 1));
    }
}
