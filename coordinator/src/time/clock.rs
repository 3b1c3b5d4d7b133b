//! Dilated time: converts between real instants and emulated times.

use std::sync::{Arc, OnceLock};

use dormouse_units::{Speedup, Time};
use tokio::time::Instant;

/// Clock of the emulated time, which is stopped until the experiment begins. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct DilatedClock {
    speedup: Speedup,
    /// Instant at which the clock started, and the time that it showed then.
    origin: Arc<OnceLock<(Instant, Time)>>,
    start: Time,
}

impl DilatedClock {
    /// Makes a clock that stands at `start`.
    pub(crate) fn standing_at(speedup: Speedup, start: Time) -> Self {
        Self { speedup, origin: Arc::default(), start }
    }

    pub(crate) fn run(&self) {
        self.run_since(Instant::now(), self.start);
    }

    /// Starts the clock, which showed `start` at `origin`.
    pub(crate) fn run_since(&self, origin: Instant, start: Time) {
        self.origin.get_or_init(|| (origin, start));
    }

    /// Returns the instant at which the clock started; `None` while it is stopped.
    pub(crate) fn started_at(&self) -> Option<Instant> {
        self.origin.get().map(|(origin, _)| *origin)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.origin.get().is_some()
    }

    pub(crate) fn show_now(&self) -> Time {
        self.show_at(Instant::now())
    }

    /// Returns the time that the clock shows or showed at an instant.
    pub(crate) fn show_at(&self, instant: Instant) -> Time {
        match self.origin.get() {
            None => self.start,
            Some((origin, start)) => {
                *start + self.speedup.to_emulated(instant.saturating_duration_since(*origin))
            }
        }
    }

    /// Returns the instant at which the clock will show `at`; `None` while it is stopped, or if that is beyond all
    /// clocks.
    pub(crate) fn instant_of(&self, at: Time) -> Option<Instant> {
        let (origin, start) = self.origin.get()?;
        origin.checked_add(self.speedup.to_real(at.since(*start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_until_it_begins() {
        let clock = DilatedClock::standing_at(Speedup::times_real(1_000_000), Time::from_secs(5));
        let other = clock.clone();
        assert_eq!(clock.show_now(), Time::from_secs(5));
        assert_eq!(clock.instant_of(Time::from_secs(6)), None);
        clock.run();
        let at = clock.instant_of(Time::from_secs(6)).expect("it runs");
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        assert!(clock.show_now() >= Time::from_secs(6) && other.show_now() >= Time::from_secs(6));
        // It does not begin again.
        clock.run_since(Instant::now(), Time::ZERO);
        assert!(other.show_now() >= Time::from_secs(6));
    }

    #[test]
    fn a_clock_that_went_on_unseen_shows_so() {
        let clock = DilatedClock::standing_at(Speedup::times_real(10), Time::from_secs(5));
        let since = Instant::now();
        clock.run_since(since, Time::from_secs(100));
        let at = |real| clock.show_at(since + std::time::Duration::from_secs(real));
        assert_eq!((at(0), at(3)), (Time::from_secs(100), Time::from_secs(130)));
        let later = clock.instant_of(Time::from_secs(130)).expect("it runs");
        assert_eq!(later, since + std::time::Duration::from_secs(3));
    }
}
