//! A VM's own time: emulated, from its creation on, hibernations left out.
//!
//! Commands say when they were decided on, on the run's clock. What follows from two of them, such
//! as when a task should end, is counted from there: it does not depend on how long they were
//! under way, so that what should happen on two VMs at the same instant does.

use std::time::{Duration, Instant};

use dormouse_proto::v1::Command;
use dormouse_units::{Span, Time};

/// How fast emulated time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dilation {
    /// Emulated microseconds per second of real time, at least 1.
    emulated_us_per_second: u64,
}

impl Dilation {
    pub(crate) fn new(emulated_us_per_second: u64) -> Self {
        Self { emulated_us_per_second: emulated_us_per_second.max(1) }
    }

    pub(crate) const fn emulated_us_per_second(self) -> u64 {
        self.emulated_us_per_second
    }

    /// Emulated time that passes in this real time.
    pub(crate) fn emulated(self, real: Duration) -> Span {
        let us = real.as_nanos() * u128::from(self.emulated_us_per_second) / 1_000_000_000;
        Span::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// Real time in which this emulated time passes.
    pub(crate) fn real(self, emulated: Span) -> Duration {
        let ns = u128::from(emulated.as_micros()) * 1_000_000_000
            / u128::from(self.emulated_us_per_second);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// When a command was decided on, and when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) came: Instant,
    late: Duration,
    /// On the run's clock, if that was said.
    at: Option<Time>,
}

impl Asked {
    /// Of a command that comes now.
    pub(crate) fn of(command: &Command) -> Self {
        let at = (command.at_us > 0).then_some(Time::from_micros(command.at_us));
        Self { came: Instant::now(), late: Duration::from_micros(command.late_us), at }
    }

    /// Now, by this worker itself.
    pub(crate) fn now() -> Self {
        Self { came: Instant::now(), late: Duration::ZERO, at: None }
    }

    /// When it was decided on, on this host's clock.
    pub(crate) fn decided(&self) -> Instant {
        self.came.checked_sub(self.late).unwrap_or(self.came)
    }
}

/// A run's clock that differs from this one's by more stood still meanwhile: its coordinator was
/// away. It is followed from where it is now.
const SAME: Duration = Duration::from_millis(50);

/// The clock of one VM.
#[derive(Debug)]
pub(crate) struct VmClock {
    dilation: Dilation,
    created: Instant,
    /// What the run's clock showed then.
    origin: Option<Time>,
    /// Time in hibernation.
    skipped: Span,
    frozen_since: Option<Time>,
}

impl VmClock {
    /// Of a VM whose creation was decided on then.
    pub(crate) fn new(dilation: Dilation, create: &Asked) -> Self {
        Self {
            dilation,
            created: create.decided(),
            origin: create.at,
            skipped: Span::ZERO,
            frozen_since: None,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    fn at(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.created);
        Time::ZERO + self.dilation.emulated(since) - self.skipped
    }

    /// When it shows `at`.
    pub(crate) fn instant_of(&self, at: Time) -> Instant {
        const FAR: Duration = Duration::from_secs(86_400 * 365);
        let span = at.since(Time::ZERO) + self.skipped;
        self.created + self.dilation.real(span).min(FAR)
    }

    /// What it showed when a command was decided on.
    pub(crate) fn decided(&mut self, asked: &Asked) -> Time {
        let own = self.at(asked.decided());
        let Some(at) = asked.at else { return own };
        let run_to_own = |origin: Time| Time::ZERO + at.since(origin) - self.skipped;
        let same = self.dilation.emulated(SAME);
        if let Some(origin) = self.origin {
            let said = run_to_own(origin);
            if said.since(own) <= same && own.since(said) <= same {
                return said;
            }
        }
        self.origin = Some(at - own.since(Time::ZERO) - self.skipped);
        own
    }

    /// What the run's clock shows when this one shows `at`, if it was ever said.
    pub(crate) fn of_run(&self, at: Time) -> Option<Time> {
        Some(self.origin? + at.since(Time::ZERO) + self.skipped)
    }

    /// Stands still from `at` on.
    pub(crate) fn freeze(&mut self, at: Time) {
        self.frozen_since = Some(at);
    }

    /// Goes on at `at`, which is counted as if it had not stood.
    pub(crate) fn thaw(&mut self, at: Time) {
        if let Some(since) = self.frozen_since.take() {
            self.skipped += at.since(since);
        }
    }

    /// Time in hibernation so far.
    pub(crate) const fn skipped(&self) -> Span {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(base: Instant, came_ms: u64, late_ms: u64, at_s: u64) -> Asked {
        let at = (at_s > 0).then_some(Time::from_secs(at_s));
        let came = base + Duration::from_millis(came_ms);
        Asked { came, late: Duration::from_millis(late_ms), at }
    }

    #[test]
    fn what_was_decided_together_has_one_time_however_late_it_comes() {
        let base = Instant::now();
        // At speed-up 10, the run's clock showing 100 s at the base.
        let mut clock = VmClock::new(Dilation::new(10_000_000), &asked(base, 7, 7, 100));
        for (came, late) in [(1000, 0), (1020, 19), (1030, 31)] {
            assert_eq!(clock.decided(&asked(base, came, late, 110)), Time::from_secs(10));
        }
        // Hibernated from 120 to 150 s, each heard of a little late.
        let frozen = clock.decided(&asked(base, 2003, 1, 120));
        clock.freeze(frozen);
        let thawed = clock.decided(&asked(base, 5009, 2, 150));
        clock.thaw(thawed);
        assert_eq!((frozen, thawed), (Time::from_secs(20), Time::from_secs(50)));
        assert_eq!(clock.skipped(), Span::from_secs(30));
        assert_eq!(clock.decided(&asked(base, 6010, 0, 160)), Time::from_secs(30));
        assert_eq!(clock.instant_of(Time::from_secs(30)), base + Duration::from_secs(6));
        assert_eq!(clock.of_run(Time::from_secs(30)), Some(Time::from_secs(160)));
    }

    #[test]
    fn a_clock_that_stood_still_is_followed_from_where_it_is() {
        let base = Instant::now();
        let mut clock = VmClock::new(Dilation::new(10_000_000), &asked(base, 0, 0, 100));
        // The coordinator was away for 3 s of real time.
        assert_eq!(clock.decided(&asked(base, 5000, 0, 120)), Time::from_secs(50));
        assert_eq!(clock.decided(&asked(base, 6010, 0, 130)), Time::from_secs(60));
        // A command that does not say when it was decided on.
        assert_eq!(clock.decided(&asked(base, 7000, 0, 0)), Time::from_secs(70));
    }
}
