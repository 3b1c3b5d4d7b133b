//! How long a run's coordinator was away, and what the run's clock shows when it goes on.

use std::time::Duration;

use dormouse_model::Event;
use dormouse_units::{Span, Speedup, Time};

/// A time of the real clock in microseconds.
pub(crate) fn micros(real: Duration) -> u64 {
    u64::try_from(real.as_micros()).unwrap_or(u64::MAX)
}

/// The run's clock beside the wall clock, as its log has it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    shows: Time,
    unix_us: u64,
    hold: Duration,
}

/// What a run goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Back {
    /// What its clock shows.
    pub(crate) at: Time,
    /// The emulated time since its last step.
    pub(crate) outage: Span,
    /// The real time since its clock was last said.
    pub(crate) away: Duration,
}

impl Back {
    /// A log that does not say what the wall clock showed: the run's clock stood still.
    pub(crate) const fn unknown(last: Time) -> Self {
        Self { at: last, outage: Span::ZERO, away: Duration::ZERO }
    }
}

impl Anchor {
    /// What an event says, if it says that.
    pub(crate) const fn from_event(event: &Event) -> Option<Self> {
        match *event {
            Event::Clock { shows, unix_us, hold_real_us } => {
                Some(Self { shows, unix_us, hold: Duration::from_micros(hold_real_us) })
            }
            _ => None,
        }
    }

    /// What the run, whose last step is of `last`, goes on with at this time of the wall clock: its
    /// VMs went on for as long as their workers kept them without a coordinator, and no longer. A
    /// wall clock that was set back stood still.
    pub(crate) fn back(&self, last: Time, unix_us: u64, speedup: Speedup) -> Back {
        let away = Duration::from_micros(unix_us.saturating_sub(self.unix_us));
        let at = self.shows + speedup.emulated(away.min(self.hold));
        let at = at.max(last);
        Back { at, outage: at.since(last), away }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_went_on_for_as_long_as_the_vms_were_kept() {
        let anchor = Anchor::from_event(&Event::Clock {
            shows: Time::from_secs(100),
            unix_us: 1_000_000_000,
            hold_real_us: 5_000_000,
        })
        .expect("it says so");
        let speedup = Speedup::times(30);
        let back = |last, after_us: u64| {
            let back = anchor.back(Time::from_secs(last), 1_000_000_000 + after_us, speedup);
            (back.at.as_micros() / 1_000_000, back.outage.as_micros() / 1_000_000)
        };
        assert_eq!(back(100, 3_000_000), (190, 90));
        // Steps after the clock was last said.
        assert_eq!(back(130, 3_000_000), (190, 60));
        // Nobody keeps its VMs overnight.
        assert_eq!(back(130, 40_000_000_000), (250, 120));
        // The wall clock was set back, or steps were made since.
        assert_eq!(back(130, 0), (130, 0));
        let early = anchor.back(Time::from_secs(130), 5, speedup);
        assert_eq!(early, Back::unknown(Time::from_secs(130)));
        assert_eq!(Anchor::from_event(&Event::Begin), None);
    }
}
