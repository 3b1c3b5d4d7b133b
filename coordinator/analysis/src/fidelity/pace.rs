//! How the clock of a live run of parallel jobs goes, and how long the phases of its jobs are.

use std::time::Duration;

use dormouse_units::{Span, Speedup, Time, Usage};
use dormouse_vm::ideal::{Program, phases_of};

/// The time for which a job's processes compute between two barriers, in real time: long against the time
/// that a process which wakes may have to wait for its neighbour. That is a period of a quota and
/// the time in which the quota makes up for a tick of the kernel's clock, 4 ms, for which a
/// neighbour may run without one: some 50 ms at a tenth of a core.
pub const PHASE: Duration = Duration::from_millis(1_600);

/// How a run's clock goes, and how long the phases of its jobs are, in real time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The speed at which the run's clock goes.
    pub speedup: Speedup,
    /// The length of a phase.
    pub phase: Duration,
}

impl Pace {
    /// Pace of a run at this speed-up, with phases of the usual length.
    #[must_use]
    pub const fn at(speedup: Speedup) -> Self {
        Self { speedup, phase: PHASE }
    }

    /// The run's clock in real time, from the run's beginning on.
    #[must_use]
    pub fn real(self, at: Time) -> Duration {
        self.speedup.real(at.since(Time::ZERO))
    }

    /// The work that a job has to do in real time, as the coordinator tells it the worker: its run time is
    /// rounded up to nanoseconds and then down to microseconds.
    #[must_use]
    pub fn program(self, runtime: Span, processes: usize, usage: &Usage) -> Program {
        let real = self.speedup.real(runtime);
        let us = u64::try_from(real.as_micros()).unwrap_or(u64::MAX);
        let usage = (0..processes).map(|n| usage.of_process(n).get()).collect();
        let phases = phases_of(real, self.phase);
        Program { runtime: Duration::from_micros(us), phases, usage }
    }
}
