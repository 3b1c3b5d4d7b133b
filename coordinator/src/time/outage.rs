//! How long a run's coordinator was away, and what the run's clock shows when the run is resumed.

use std::time::Duration;

use dormouse_model::{BootClock, Event};
use dormouse_units::{Span, Speedup, Time};

/// Converts a real time to microseconds.
pub(crate) fn to_micros(real: Duration) -> u64 {
    u64::try_from(real.as_micros()).unwrap_or(u64::MAX)
}

/// Last recorded relation of the run's clock to the clocks of its coordinator's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockAnchor {
    shows: Time,
    machine: MachineTime,
    hold: Duration,
}

/// Clocks of the coordinator's machine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineTime {
    /// Wall clock, in microseconds since 1970.
    pub(crate) unix_us: u64,
    /// Clock since boot, which nobody sets, if the machine has one.
    pub(crate) since_boot: Option<BootClock>,
}

impl MachineTime {
    /// Returns the time since an `earlier` moment: by the clock since boot unless the machine was rebooted. A wall
    /// clock that was set back counts as having been stopped.
    fn time_since(&self, earlier: &Self) -> Duration {
        let us = match (&self.since_boot, &earlier.since_boot) {
            (Some(now), Some(then)) if now.boot == then.boot => now.us.saturating_sub(then.us),
            _ => self.unix_us.saturating_sub(earlier.unix_us),
        };
        Duration::from_micros(us)
    }
}

/// State of the run's clock at a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResumedClock {
    /// Time that the run's clock shows at the resume.
    pub(crate) at: Time,
    /// Emulated time since the run's last step.
    pub(crate) outage: Span,
    /// Real time since the clock was last recorded.
    pub(crate) away: Duration,
}

impl ResumedClock {
    /// Makes the state for a log without a wall clock: the run's clock was stopped.
    pub(crate) const fn unknown_outage(last: Time) -> Self {
        Self { at: last, outage: Span::ZERO, away: Duration::ZERO }
    }
}

impl ClockAnchor {
    /// Reads from an event how the run's clock relates to the machine's clocks; `None`: the event doesn't record it.
    pub(crate) fn from_event(event: &Event) -> Option<Self> {
        match event {
            Event::Clock { shows, unix_us, hold_real_us, since_boot } => Some(Self {
                shows: *shows,
                machine: MachineTime { unix_us: *unix_us, since_boot: since_boot.clone() },
                hold: Duration::from_micros(*hold_real_us),
            }),
            _ => None,
        }
    }

    /// Computes the state of the clock of a run that is resumed now, whose last step was at `last`: its VMs continued
    /// for as long as their workers kept them without a coordinator.
    pub(crate) fn resume_clock(
        &self,
        last: Time,
        machine: &MachineTime,
        speedup: Speedup,
    ) -> ResumedClock {
        let away = machine.time_since(&self.machine);
        let at = self.shows + speedup.to_emulated(away.min(self.hold));
        let at = at.max(last);
        ResumedClock { at, outage: at.since(last), away }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEEDUP: Speedup = Speedup::times_real(30);

    fn anchor(since_boot: Option<BootClock>) -> ClockAnchor {
        let shows = Time::from_secs(100);
        let (unix_us, hold_real_us) = (1_000_000_000, 5_000_000);
        ClockAnchor::from_event(&Event::Clock { shows, unix_us, hold_real_us, since_boot })
            .expect("it says so")
    }

    fn in_seconds(back: ResumedClock) -> (u64, u64, u64) {
        (back.at.as_micros() / 1_000_000, back.outage.as_micros() / 1_000_000, back.away.as_secs())
    }

    #[test]
    fn the_clock_went_on_for_as_long_as_the_vms_were_kept() {
        let anchor = anchor(None);
        let back = |last, after_us: u64| {
            let machine = MachineTime { unix_us: 1_000_000_000 + after_us, since_boot: None };
            in_seconds(anchor.resume_clock(Time::from_secs(last), &machine, SPEEDUP))
        };
        assert_eq!(back(100, 3_000_000), (190, 90, 3));
        // Steps after the clock was last said.
        assert_eq!(back(130, 3_000_000), (190, 60, 3));
        // Nobody keeps its VMs overnight.
        assert_eq!(back(130, 40_000_000_000), (250, 120, 40_000));
        // The wall clock was set back, or steps were made since.
        assert_eq!(back(130, 0), (130, 0, 0));
        let set_back = MachineTime { unix_us: 5, since_boot: None };
        let early = anchor.resume_clock(Time::from_secs(130), &set_back, SPEEDUP);
        assert_eq!(early, ResumedClock::unknown_outage(Time::from_secs(130)));
        assert_eq!(ClockAnchor::from_event(&Event::Begin), None);
    }

    #[test]
    fn a_wall_clock_that_is_set_ends_no_run() {
        let since_boot =
            |boot: &str, s: u64| Some(BootClock { boot: boot.to_owned(), us: s * 1_000_000 });
        let anchor = anchor(since_boot("this boot", 700));
        let back = |unix_s: u64, since_boot| {
            let machine = MachineTime { unix_us: unix_s * 1_000_000, since_boot };
            in_seconds(anchor.resume_clock(Time::from_secs(100), &machine, SPEEDUP))
        };
        // Three seconds have passed, whether it was set a day ahead or back.
        assert_eq!(back(1_000 + 86_400, since_boot("this boot", 703)), (190, 90, 3));
        assert_eq!(back(3, since_boot("this boot", 703)), (190, 90, 3));
        // Another boot, or another machine: the wall clock is all that both have.
        assert_eq!(back(1_004, since_boot("another", 2)), (220, 120, 4));
        assert_eq!(back(1_004, None), (220, 120, 4));
    }
}
