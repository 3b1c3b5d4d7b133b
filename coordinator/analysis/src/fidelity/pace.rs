//! How the clock of a live run of parallel jobs goes, and how long the phases of its jobs are.

use std::time::Duration;

use dormouse_units::{Span, Speedup, Usage};
use dormouse_vm::ideal::{self, Program, phases_of};

/// How long a job's processes compute between two barriers, in real time: long against the time
/// that a process which wakes may have to wait for its neighbour. That is a period of a quota and
/// the time in which the quota makes up for a tick of the kernel's clock, 4 ms, for which a
/// neighbour may run without one: some 50 ms at a tenth of a core.
pub const PHASE: Duration = Duration::from_millis(1_600);

/// How a run's clock goes, and how long the phases of its jobs are, in real time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Microseconds of its clock in a second.
    pub emulated_us_per_second: u64,
    /// How long a phase is.
    pub phase: Duration,
}

impl Pace {
    /// Pace of a run at this speed-up; `None` if it is no speed-up.
    #[must_use]
    pub fn at(speedup: f64) -> Option<Self> {
        let emulated_us_per_second = Speedup::from_f64(speedup)?.emulated_us_per_second();
        Some(Self { emulated_us_per_second, phase: PHASE })
    }

    /// The run's clock in real time.
    #[must_use]
    pub fn real(self, us: u64) -> Duration {
        ideal::real(us, self.emulated_us_per_second)
    }

    /// The emulated time of so much real time.
    #[must_use]
    pub fn emulated(self, real: Duration) -> Span {
        let us = real.as_nanos() * u128::from(self.emulated_us_per_second) / 1_000_000_000;
        Span::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// What a job has to do in real time, as the coordinator tells it the worker: its run time is
    /// rounded up to nanoseconds and then down to microseconds.
    #[must_use]
    pub fn program(self, runtime: Span, processes: usize, usage: &Usage) -> Program {
        let ns = (u128::from(runtime.as_micros()) * 1_000_000_000)
            .div_ceil(u128::from(self.emulated_us_per_second.max(1)));
        let real = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        let us = u64::try_from(real.as_micros()).unwrap_or(u64::MAX);
        let usage = (0..processes).map(|n| usage.of(n).get()).collect();
        let phases = phases_of(real, self.phase);
        Program { runtime: Duration::from_micros(us), phases, usage }
    }
}
