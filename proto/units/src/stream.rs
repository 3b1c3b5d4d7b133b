//! Seeded random numbers that are the same on every machine: one stream per purpose and entity.

use crate::Span;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A stream of random draws that depends only on (seed, purpose, entity), so that one more draw in one place changes no
/// other stream. The draws are the same on every machine: ChaCha8 for the bits, `libm` for transcendental functions.
#[derive(Clone, Debug)]
pub struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// The stream of `entity` for `purpose` under `seed`.
    #[must_use]
    pub fn new(seed: u64, purpose: &str, entity: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&fnv1a(purpose.as_bytes()).to_le_bytes());
        key[16..24].copy_from_slice(&entity.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// The stream of an entity that has a name instead of a number; otherwise as [`RandomStream::new`].
    #[must_use]
    pub fn named_stream(seed: u64, purpose: &str, entity: &str) -> Self {
        Self::new(seed, purpose, fnv1a(entity.as_bytes()))
    }

    /// 64 random bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`, each with the same probability (Lemire's multiplication, biased by less
    /// than n/2^64).
    ///
    /// The result is zero if `n` is zero.
    #[expect(clippy::cast_possible_truncation, reason = "the product shifted by 64 is below n")]
    pub fn draw_below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_bits()) * n as u128) >> 64) as usize
    }

    /// A number in [0, 1) with 53 random bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn draw_unit(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed span with this mean (inverse CDF), at least a microsecond.
    pub fn draw_exponential(&mut self, mean: Span) -> Span {
        let x = -libm::log(1.0 - self.draw_unit()) * mean.as_secs_f64();
        Span::from_secs_f64(x).unwrap_or(mean).max(Span::from_micros(1))
    }

    /// A log-normally distributed factor of mean 1 and this coefficient of variation (Box and
    /// Muller's normal draw).
    pub fn draw_lognormal(&mut self, variation: f64) -> f64 {
        let variance = libm::log1p(variation * variation);
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.draw_unit()));
        let normal = radius * libm::cos(std::f64::consts::TAU * self.draw_unit());
        libm::exp(normal * libm::sqrt(variance) - variance / 2.0)
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results are stored and compared across versions: the random bits must never change.
    #[test]
    fn the_bits_never_change() {
        let mut stream = RandomStream::new(42, "interruptions", 7);
        assert_eq!(
            [stream.next_bits(), stream.next_bits()],
            [17_952_308_331_395_014_837, 2_937_393_961_523_013_745],
        );
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_entity() {
        let first = |seed, purpose, entity| RandomStream::new(seed, purpose, entity).next_bits();
        let all = [first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1)];
        for (i, x) in all.iter().enumerate() {
            assert!(!all[..i].contains(x));
        }
    }

    #[test]
    fn exponential_draws_have_their_mean() {
        let mut stream = RandomStream::new(1, "test", 0);
        let mean = Span::from_secs(540);
        let total: Span = (0..20_000).map(|_| stream.draw_exponential(mean)).sum();
        let ratio = total.as_secs_f64() / 20_000.0 / mean.as_secs_f64();
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
    }

    #[test]
    fn lognormal_factors_have_mean_one_and_their_variation() {
        let mut stream = RandomStream::new(1, "test", 0);
        let all: Vec<f64> = (0..20_000).map(|_| stream.draw_lognormal(0.3)).collect();
        let mean = all.iter().sum::<f64>() / 20_000.0;
        let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 20_000.0;
        assert!((0.99..1.01).contains(&mean), "{mean}");
        assert!((0.28..0.32).contains(&variance.sqrt()), "{variance}");
        assert!(all.iter().all(|x| *x > 0.0));
        assert!((stream.draw_lognormal(0.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn below_reaches_every_value() {
        let mut stream = RandomStream::new(1, "test", 0);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[stream.draw_below(7)] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
