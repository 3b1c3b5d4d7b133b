//! The pseudo-random numbers of the NAS benchmarks (NAS-95-020, section 2.3).

/// The random generator of NAS: x ← a·x mod 2^46 with a = 5^13; its numbers are x·2^−46.
#[derive(Clone, Debug)]
pub(crate) struct NasRandom(u64);

const MULTIPLIER: u64 = 1_220_703_125;
const MASK: u64 = (1 << 46) - 1;
const SCALE: f64 = 1.0 / (1_u64 << 46) as f64;

/// Published seed of the kernels IS, CG, MG and FT.
pub(crate) const SEED: u64 = 314_159_265;

impl NasRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next random number, in (0, 1).
    #[inline]
    pub(crate) fn next(&mut self) -> f64 {
        // The low 46 bits of a product depend on the low 46 bits of its factors only.
        self.0 = self.0.wrapping_mul(MULTIPLIER) & MASK;
        self.0 as f64 * SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_recurrence() {
        let mut random = NasRandom::new(SEED);
        let mut x = u128::from(SEED);
        for _ in 0..1000 {
            x = x * u128::from(MULTIPLIER) % (1 << 46);
            assert_eq!(random.next(), x as f64 / (1_u64 << 46) as f64);
        }
    }
}
