//! Speed of the clock in a live run of parallel jobs, and the length of the phases of its jobs.

use std::time::Duration;

use dormouse_units::{Span, Speedup, Time, Usage};
use dormouse_vm::ideal::{JobProgram, phases_of};

/// Real time for which a job's processes compute between two barriers. It is much longer than the wait of a waking process for its
/// neighbour on the processor, some 50 ms at a tenth of a core. That wait is one period of the quota, plus the time to make up for
/// a tick of the kernel's clock (4 ms) for which the neighbour may run without quota.
pub const PHASE: Duration = Duration::from_millis(1_600);

/// Speed of a run's clock, and real length of its jobs' phases (the time between two barriers).
#[derive(Clone, Copy, Debug)]
pub struct RunPace {
    /// Speed of the run's clock.
    pub speedup: Speedup,
    /// Real time for which a job's processes compute between two barriers.
    pub phase: Duration,
}

impl RunPace {
    /// The pace of a run at this speed-up, with phases of the usual length, `PHASE`.
    #[must_use]
    pub const fn at(speedup: Speedup) -> Self {
        Self { speedup, phase: PHASE }
    }

    /// Real time from the run's beginning to `at`.
    #[must_use]
    pub fn real(self, at: Time) -> Duration {
        self.speedup.to_real(at.since(Time::ZERO))
    }

    /// The work of a job in real time, as the coordinator sends it to the worker: the run time is rounded up to
    /// nanoseconds and then down to microseconds.
    #[must_use]
    pub fn program(self, runtime: Span, processes: usize, usage: &Usage) -> JobProgram {
        let real = self.speedup.to_real(runtime);
        let us = u64::try_from(real.as_micros()).unwrap_or(u64::MAX);
        let usage = (0..processes).map(|n| usage.of_process(n).get()).collect();
        let phases = phases_of(real, self.phase);
        JobProgram { runtime: Duration::from_micros(us), phases, usage }
    }
}
