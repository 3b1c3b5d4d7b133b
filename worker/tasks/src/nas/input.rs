//! The input of one repetition of a kernel: the published one, or one that nobody has seen before.
//!
//! Repetitions of the published input all come to the same figures, so that whoever has computed one knows them all. Every
//! second repetition has an input that is drawn from the trail of the task, which takes in what the one before came to.

use crate::digest::mix;

/// The state of the generator of the NAS benchmarks has so many bits.
const SEED_BITS: u32 = 46;
/// Constant terms of the exact density of SP that are drawn: between those of the published tasks 0 and 100 of ED.
const DENSITIES: std::ops::Range<f64> = 2.0..4.0;

/// The input of one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelInput {
    /// The input whose figures are published.
    Published,
    /// An input that this number makes, whose figures nobody knows who has not computed them.
    Drawn(u64),
}

impl KernelInput {
    /// The input of the repetition with this index of a task, whose trail is at this number when it begins.
    pub(crate) const fn of_repetition(index: u64, trail: u64) -> Self {
        if index.is_multiple_of(2) { Self::Published } else { Self::Drawn(trail) }
    }

    /// The seed of a kernel whose published input has this one.
    pub(crate) const fn seed(self, published: u64) -> u64 {
        match self {
            Self::Published => published,
            // An even seed has a short period.
            Self::Drawn(number) => mix(number) >> (u64::BITS - SEED_BITS) | 1,
        }
    }

    /// The constant term of the exact density of SP, where this is the published one.
    pub(crate) fn density(self, published: f64) -> f64 {
        match self {
            Self::Published => published,
            Self::Drawn(number) => {
                let part = (mix(number) >> 11) as f64 / (1_u64 << 53) as f64;
                DENSITIES.start + (DENSITIES.end - DENSITIES.start) * part
            }
        }
    }
}

/// The number of the first so many repetitions whose input is the published one.
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
