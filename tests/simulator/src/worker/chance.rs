//! Draws of a machine: what fails, and how long things take.

use std::time::Duration;

use dormouse_units::{Ppm, RandomStream};

/// A seeded stream of what befalls a machine.
#[derive(Clone, Debug)]
pub(super) struct Chance(RandomStream);

impl Chance {
    pub(super) const fn new(stream: RandomStream) -> Self {
        Self(stream)
    }

    /// Whether something happens that does in this part of all cases.
    pub(super) fn happens(&mut self, rate: Ppm) -> bool {
        rate > Ppm::ZERO && self.0.draw_below(1_000_000) < rate.get() as usize
    }

    /// A number below `n`; zero where there is none.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.draw_below(n)
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_bits()
    }

    /// A time of some milliseconds: evenly up to twice as long as usual, and ten times that once in
    /// a while, as on a busy host.
    pub(super) fn time(&mut self, usual: Duration) -> Duration {
        let us = usize::try_from(2 * usual.as_micros()).unwrap_or(usize::MAX);
        let drawn = 1 + self.0.draw_below(us) as u64;
        let times = if self.0.draw_below(40) == 0 { 10 } else { 1 };
        Duration::from_micros(drawn * times)
    }
}
