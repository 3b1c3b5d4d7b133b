//! The work of a rank: a chain of integer multiplications, which nobody can shorten while
//! doing it, and whose end is nevertheless known in closed form.

use std::hint::black_box;

/// Steps in a block, which is the unit of work: about 50 µs.
const STEPS: u64 = 1 << 15;

/// Knuth's linear congruential generator modulo 2^64 (MMIX).
const STEP: Affine =
    Affine { factor: 6_364_136_223_846_793_005, offset: 1_442_695_040_888_963_407 };

/// What rank `rank` starts from.
pub(super) fn start(seed: u64, rank: usize) -> u64 {
    STEP.power(rank as u64 + 1).of(seed)
}

/// What a rank goes on from, given its own and its neighbour's last results.
pub(super) fn join(own: u64, neighbour: u64) -> u64 {
    own.wrapping_add(neighbour.rotate_left(17))
}

/// Does a block of work.
pub(super) fn block(mut state: u64) -> u64 {
    for _ in 0..STEPS {
        state = STEP.of(state);
    }
    black_box(state)
}

/// The result of `blocks` blocks of work from `state`, without doing them.
pub(super) fn result(state: u64, blocks: u64) -> u64 {
    STEP.power(blocks.wrapping_mul(STEPS)).of(state)
}

/// x → factor·x + offset modulo 2^64.
#[derive(Clone, Copy)]
struct Affine {
    factor: u64,
    offset: u64,
}

impl Affine {
    fn of(self, x: u64) -> u64 {
        self.factor.wrapping_mul(x).wrapping_add(self.offset)
    }

    /// First `self`, then `next`.
    fn then(self, next: Self) -> Self {
        Self { factor: next.factor.wrapping_mul(self.factor), offset: next.of(self.offset) }
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
        let mut state = start(7, 3);
        for blocks in 0..5 {
            assert_eq!(result(start(7, 3), blocks), state, "{blocks} blocks");
            state = block(state);
        }
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
