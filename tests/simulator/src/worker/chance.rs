//! Random draws of a machine: what fails, and how long operations take.

use std::time::Duration;

use dormouse_units::{Ppm, RandomStream};

/// A seeded random stream that decides what goes wrong on a machine.
#[derive(Clone, Debug)]
pub(super) struct Chance(RandomStream);

impl Chance {
    pub(super) const fn new(stream: RandomStream) -> Self {
        Self(stream)
    }

    /// True at this rate.
    pub(super) fn happens(&mut self, rate: Ppm) -> bool {
        rate > Ppm::ZERO && self.0.draw_below(1_000_000) < rate.get() as usize
    }

    /// A random number below `n`; 0 if `n` is 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.draw_below(n)
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_bits()
    }

    /// A random time: evenly up to twice the usual one, and once in a while ten times that, as on a busy host.
    pub(super) fn time(&mut self, usual: Duration) -> Duration {
        let us = usize::try_from(2 * usual.as_micros()).unwrap_or(usize::MAX);
        let drawn = 1 + self.0.draw_below(us) as u64;
        let times = if self.0.draw_below(40) == 0 { 10 } else { 1 };
        Duration::from_micros(drawn * times)
    }
}
