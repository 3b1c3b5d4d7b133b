//! The first message to every worker.

use std::time::Duration;

use dormouse_proto::v1;
use dormouse_units::HostId;

use crate::plan::ConductorPlan;
use crate::time::clock::DilatedClock;

/// What the coordinator tells workers about a run when they connect. Each session has a copy, so that a worker that
/// reconnects is welcomed without the conductor.
#[derive(Clone, Debug)]
pub(crate) struct WorkerGreeting {
    welcome: v1::Welcome,
    clock: DilatedClock,
}

impl WorkerGreeting {
    /// Makes the greeting for this host of a run.
    pub(crate) fn new(
        plan: &ConductorPlan,
        clock: DilatedClock,
        (host, life): (HostId, (&str, u64)),
    ) -> Self {
        let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let welcome = v1::Welcome {
            run: plan.run.clone(),
            host: host.get(),
            emulated_us_per_second: plan.speedup.emulated_us_per_second(),
            programs: plan.to_measure(),
            lost_after_ms: millis(plan.lost_after),
            hold_ms: millis(plan.hold),
            hold_checkpoints: plan.hold_checkpoints,
            noop: plan.noop,
            image_key: plan.image_key.told_to(life).to_vec().into(),
            ..v1::Welcome::default()
        };
        Self { welcome, clock }
    }

    /// Makes a greeting with nothing but the clock's speed.
    #[cfg(test)]
    pub(crate) fn bare_greeting(speedup: dormouse_units::Speedup) -> Self {
        let clock = DilatedClock::standing_at(speedup, dormouse_units::Time::ZERO);
        Self { welcome: v1::Welcome::default(), clock }
    }

    /// Makes the welcome message with the current time, for this version of the protocol.
    pub(crate) fn welcome_now(&self, protocol: u32) -> v1::Welcome {
        v1::Welcome { now_us: self.clock.show_now().as_micros(), protocol, ..self.welcome.clone() }
    }
}
