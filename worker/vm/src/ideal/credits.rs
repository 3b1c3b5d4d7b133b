//! The credits of a machine whose clock is real time: they are earned and spent in emulated time.

use std::time::Duration;

use crate::{CreditAllowance, CreditSpec};
use dormouse_units::{Ppm, Span, Speedup};

/// Credits of a reference machine, with the time up to which earned and spent credits are accounted for.
#[derive(Clone, Debug)]
pub(super) struct CreditAccounting {
    pub(super) allowance: CreditAllowance,
    /// Ratio of emulated time to the machine's time.
    speedup: Speedup,
    /// Emulated time, counted from the machine's creation, up to which earned and spent credits are accounted for.
    passed: Span,
}

impl CreditAccounting {
    /// Makes the credits of a machine that is created at its time zero.
    pub(super) fn new(spec: CreditSpec, speedup: Speedup) -> Self {
        Self { allowance: CreditAllowance::new(spec), speedup, passed: Span::ZERO }
    }

    /// Makes the credits that the machine has if it is created at `now`, in nanoseconds of the machine's clock.
    pub(super) fn made_at(&self, now: u64) -> Self {
        let spec = *self.allowance.spec();
        Self { passed: self.emulated_since(now), ..Self::new(spec, self.speedup) }
    }

    fn emulated_since(&self, now: u64) -> Span {
        self.speedup.to_emulated(Duration::from_nanos(now))
    }

    /// Returns the speed of the processors, in ppm of full speed.
    pub(super) fn processor_speed(&self) -> u64 {
        self.allowance.speed_ceiling().get().into()
    }

    /// Returns the nanoseconds from `now` until credits change the processors' speed, while `computing` processors compute; `None`:
    /// never.
    pub(super) fn turn_after(&self, now: u64, computing: usize) -> Option<u64> {
        let after = self.allowance.turn_after(self.used_ppm(computing))?.max(Span::from_micros(1));
        let at = self.speedup.to_real(self.passed + after);
        Some(super::to_nanos(at).saturating_sub(now).max(1))
    }

    /// Accounts for the time up to now, in which `computing` processors computed.
    pub(super) fn pass_time(&mut self, now: u64, computing: usize) {
        let (now, used) = (self.emulated_since(now), self.used_ppm(computing));
        self.allowance.pass_time(now.saturating_sub(self.passed), used);
        self.passed = now.max(self.passed);
    }

    /// Returns the vCPU use of `computing` processors, in ppm of a processor.
    fn used_ppm(&self, computing: usize) -> u64 {
        computing as u64 * self.processor_speed()
    }
}

/// Returns the time, in nanoseconds, that a processor of speed `speed` (in ppm of full speed) takes for work that takes `work` at
/// full speed.
pub(super) fn time_for_work(work: u64, speed: u64) -> u64 {
    let full = u64::from(Ppm::ONE.get());
    if speed == full {
        return work;
    }
    let ns = (u128::from(work) * u128::from(full)).div_ceil(u128::from(speed.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// Returns the work that a processor of speed `speed` (in ppm of full speed) does in `span`, as nanoseconds at full speed.
pub(super) fn work_in_time(span: u64, speed: u64) -> u64 {
    let full = u64::from(Ppm::ONE.get());
    if speed == full {
        return span;
    }
    let ns = u128::from(span) * u128::from(speed) / u128::from(full);
    u64::try_from(ns).unwrap_or(u64::MAX)
}
