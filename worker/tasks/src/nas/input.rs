//! Input of one repetition of a kernel: the published input, or one that was drawn.
//!
//! Repetitions of the published input all have the same figures, so one computation would be enough to claim all of
//! them. Therefore every second repetition gets an input drawn from the task's trail, which depends on the result of
//! the repetition before.

use crate::digest::mix_bits;

/// Number of bits of the NAS generator's state.
const SEED_BITS: u32 = 46;
/// Range of drawn constant terms of SP's exact density: between those of the published ED tasks 0
/// and 100.
const DENSITIES: std::ops::Range<f64> = 2.0..4.0;

/// The input of one repetition of a kernel: the published one, or one that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelInput {
    /// The published input, whose figures are known.
    Published,
    /// An input derived from the given number; its figures are known only after computing them.
    Drawn(u64),
}

impl KernelInput {
    /// Returns the input of repetition `index` of a task; `trail` is the hash of all values computed before the repetition begins.
    pub(crate) const fn of_repetition(index: u64, trail: u64) -> Self {
        if index.is_multiple_of(2) { Self::Published } else { Self::Drawn(trail) }
    }

    /// Returns the random seed of a kernel with this input; `published` is the seed of the published input.
    pub(crate) const fn seed(self, published: u64) -> u64 {
        match self {
            Self::Published => published,
            // An even seed has a short period.
            Self::Drawn(number) => mix_bits(number) >> (u64::BITS - SEED_BITS) | 1,
        }
    }

    /// Returns the constant term of SP's exact density with this input; `published` is the constant term of the published input.
    pub(crate) fn density(self, published: f64) -> f64 {
        match self {
            Self::Published => published,
            Self::Drawn(number) => {
                let part = (mix_bits(number) >> 11) as f64 / (1_u64 << 53) as f64;
                DENSITIES.start + (DENSITIES.end - DENSITIES.start) * part
            }
        }
    }
}

/// Returns the number of repetitions with the published input among the first `repetitions`.
pub(crate) const fn published_among(repetitions: u64) -> u64 {
    repetitions.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_input_is_the_published_one_and_the_others_hang_on_the_trail() {
        for count in 0..9 {
            let inputs = (0..count).map(|index| KernelInput::of_repetition(index, 7));
            let published = inputs.filter(|input| *input == KernelInput::Published).count();
            assert_eq!(published as u64, published_among(count), "{count}");
        }
        let (one, other) = (KernelInput::Drawn(7), KernelInput::Drawn(8));
        assert_eq!(KernelInput::of_repetition(3, 7), one);
        assert_ne!(one.seed(5), other.seed(5));
        assert!((one.density(2.0) - other.density(2.0)).abs() > 1e-6);
        let published = KernelInput::Published;
        assert_eq!((published.seed(5), published.density(3.5).to_bits()), (5, 3.5_f64.to_bits()));
        for number in 0..1000 {
            let drawn = KernelInput::Drawn(number);
            assert!(drawn.seed(5) < 1 << SEED_BITS && drawn.seed(5) % 2 == 1, "{number}");
            assert!(DENSITIES.contains(&drawn.density(2.0)), "{number}");
        }
    }
}
