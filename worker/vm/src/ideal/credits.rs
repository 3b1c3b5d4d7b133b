//! The credits of a machine whose clock is real time: they are earned and spent in emulated time.

use crate::{Allowance, CreditSpec};
use dormouse_units::{Ppm, Span};

/// What a machine has of credits, and up to when that is accounted for.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    pub(super) allowance: Allowance,
    /// Emulated microseconds per second of the machine's clock.
    emulated_us_per_second: u64,
    /// Emulated microseconds up to which the credits are accounted for.
    passed_us: u64,
}

impl Credits {
    /// Those of a machine that is made at its time zero.
    pub(super) fn new(spec: CreditSpec, emulated_us_per_second: u64) -> Self {
        let emulated_us_per_second = emulated_us_per_second.max(1);
        Self { allowance: Allowance::new(spec), emulated_us_per_second, passed_us: 0 }
    }

    /// The same of one that is made now.
    pub(super) fn anew(&self, now: u64) -> Self {
        let spec = *self.allowance.spec();
        Self { passed_us: self.emulated(now), ..Self::new(spec, self.emulated_us_per_second) }
    }

    fn emulated(&self, now: u64) -> u64 {
        let us = u128::from(now) * u128::from(self.emulated_us_per_second) / 1_000_000_000;
        u64::try_from(us).unwrap_or(u64::MAX)
    }

    /// How fast processors are, in ppm of their full speed.
    pub(super) fn speed(&self) -> u64 {
        self.allowance.ceiling().get().into()
    }

    /// Nanoseconds from now until that changes if so many processors compute; none if it does not.
    pub(super) fn turn_after(&self, now: u64, computing: usize) -> Option<u64> {
        let after = self.allowance.turn_after(self.used(computing))?.max(Span::from_micros(1));
        let turn = u128::from(self.passed_us.checked_add(after.as_micros())?);
        let at = (turn * 1_000_000_000).div_ceil(u128::from(self.emulated_us_per_second));
        Some(u64::try_from(at).ok()?.saturating_sub(now).max(1))
    }

    /// So many processors computed up to now.
    pub(super) fn pass(&mut self, now: u64, computing: usize) {
        let (now, used) = (self.emulated(now), self.used(computing));
        let span = Span::from_micros(now.saturating_sub(self.passed_us));
        self.allowance.pass(span, used);
        self.passed_us = now.max(self.passed_us);
    }

    /// What they use, in ppm of a processor.
    fn used(&self, computing: usize) -> u64 {
        computing as u64 * self.speed()
    }
}

/// How long a processor of this speed takes for work that takes so long at full speed.
pub(super) fn takes(work: u64, speed: u64) -> u64 {
    let full = u64::from(Ppm::ONE.get());
    if speed == full {
        return work;
    }
    let ns = (u128::from(work) * u128::from(full)).div_ceil(u128::from(speed.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// What it has done in that time, as the time that takes at full speed.
pub(super) fn does(span: u64, speed: u64) -> u64 {
    let full = u64::from(Ppm::ONE.get());
    if speed == full {
        return span;
    }
    let ns = u128::from(span) * u128::from(speed) / u128::from(full);
    u64::try_from(ns).unwrap_or(u64::MAX)
}
