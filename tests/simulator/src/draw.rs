//! Random draws for plans, each from a seeded stream.

use dormouse_units::RandomStream;

/// A seeded random stream of small whole numbers, for a plan with a given number of workers.
#[derive(Clone, Debug)]
pub struct Draw {
    stream: RandomStream,
    workers: usize,
}

impl Draw {
    /// The random stream for one purpose under a seed.
    #[must_use]
    pub fn new(seed: u64, purpose: &str, workers: usize) -> Self {
        Self { stream: RandomStream::new(seed, purpose, 0), workers }
    }

    /// A random number below `n`; 0 if `n` is 0.
    #[expect(clippy::cast_possible_truncation, reason = "it is below a number of 32 bits")]
    pub fn below(&mut self, n: u32) -> u32 {
        self.stream.draw_below(n as usize) as u32
    }

    /// A random number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let many = usize::try_from(high.saturating_sub(low) + 1).unwrap_or(usize::MAX);
        low + self.stream.draw_below(many) as u64
    }

    /// True once in `n` draws on average.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.stream.draw_unit() < probability
    }

    /// A random number of parts per million.
    pub fn ppm(&mut self) -> u32 {
        self.below(1_000_001)
    }

    /// A random worker, by its index in the plan.
    pub fn worker(&mut self) -> usize {
        self.stream.draw_below(self.workers)
    }

    /// A random element of `all`.
    ///
    /// # Panics
    ///
    /// `all` is empty.
    pub fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.stream.draw_below(all.len())]
    }

    /// A random number of events with this mean (Knuth's method, for a small mean).
    pub fn poisson(&mut self, mean: f64) -> u32 {
        let (limit, mut product, mut events) = (libm::exp(-mean), self.stream.draw_unit(), 0);
        while product > limit && events < 100 {
            product *= self.stream.draw_unit();
            events += 1;
        }
        events
    }

    /// Yields a random number of times, so that other tasks that are ready at this instant may go first.
    pub async fn turns(&mut self) {
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.stream.next_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_events_have_their_mean() {
        let mut draw = Draw::new(1, "test", 1);
        let total: u32 = (0..10_000).map(|_| draw.poisson(0.7)).sum();
        assert!((6_700..7_300).contains(&total), "{total}");
        assert_eq!(draw.poisson(0.0), 0);
    }
}
