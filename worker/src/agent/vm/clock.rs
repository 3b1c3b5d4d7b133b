//! The clock of a VM: emulated time since the VM's creation, without hibernations.
//!
//! Commands carry the time of their decision on the run's clock. Times that follow from two commands, such as when a
//! task should end, are counted from the decisions and don't depend on how long the commands were in transit. So events
//! that are due on two VMs at the same instant happen at the same instant.

use std::time::Duration;
use tokio::time::Instant;

use dormouse_proto::v1::Command;
use dormouse_units::{Span, Speedup, Time};

/// When a command was decided and when it arrived.
#[derive(Clone, Copy, Debug)]
pub struct CommandStamp {
    /// Time at which the command arrived.
    pub came: Instant,
    late: Duration,
    /// Time at which the command was decided, on the run's clock; `None`: the command doesn't say.
    pub at: Option<Time>,
}

impl CommandStamp {
    /// Stamps a command that arrives now.
    #[must_use]
    pub fn from_command(command: &Command) -> Self {
        let at = command.emulated_at_us.map(Time::from_micros);
        Self { came: Instant::now(), late: Duration::from_micros(command.real_late_us), at }
    }

    /// Stamps a command that arrived without delay, for tests.
    #[cfg(test)]
    pub(crate) fn undelayed_at(came: Instant, at: Time) -> Self {
        Self { came, late: Duration::ZERO, at: Some(at) }
    }

    /// Makes the stamp of a decision of this worker now.
    #[must_use]
    pub fn stamp_now() -> Self {
        Self { came: Instant::now(), late: Duration::ZERO, at: None }
    }

    /// Returns the instant of the decision on the command, on this host's clock.
    #[must_use]
    pub fn decided_at(&self) -> Instant {
        self.came.checked_sub(self.late).unwrap_or(self.came)
    }
}

/// Difference beyond which the offset of the run's clock from this host's clock is set anew. The cause is that the run's clock was
/// stopped while the coordinator was away, or that a command arrived much later than its time says.
const SAME: Duration = Duration::from_millis(50);

/// Clock of one VM, which is stopped while the VM hibernates.
#[derive(Debug)]
pub(crate) struct VmClock {
    speedup: Speedup,
    created: Instant,
    /// Microseconds by which the run's clock is ahead of the time since the VM's creation; negative if the run's clock was stopped
    /// for longer than it had run before; `None`: unknown.
    ahead_us: Option<i64>,
    /// Time spent in hibernation.
    skipped: Span,
    frozen_since: Option<Time>,
}

impl VmClock {
    /// Makes the clock of a VM whose creation was decided at the time in `create`.
    #[must_use]
    pub(crate) fn new(speedup: Speedup, create: &CommandStamp) -> Self {
        Self {
            speedup,
            created: create.decided_at(),
            ahead_us: create.at.map(to_signed),
            skipped: Span::ZERO,
            frozen_since: None,
        }
    }

    /// Returns the time that the clock shows.
    #[must_use]
    pub(crate) fn now(&self) -> Time {
        self.shown_at(Instant::now())
    }

    fn shown_at(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.created);
        Time::ZERO + self.speedup.to_emulated(since) - self.skipped
    }

    /// Returns the instant at which the clock shows `at`.
    #[must_use]
    pub(crate) fn instant_of(&self, at: Time) -> Instant {
        const FAR: Duration = Duration::from_secs(86_400 * 365);
        let span = at.since(Time::ZERO) + self.skipped;
        self.created + self.speedup.to_real(span).min(FAR)
    }

    /// Returns the time that the clock showed when a command was decided.
    pub(crate) fn note_decided(&mut self, asked: &CommandStamp) -> Time {
        let own = self.shown_at(asked.decided_at());
        let Some(at) = asked.at else { return own };
        let same = self.speedup.to_emulated(SAME);
        if let Some(ahead_us) = self.ahead_us {
            let said = moved_by(at, ahead_us.saturating_neg()) - self.skipped;
            if said.since(own) <= same && own.since(said) <= same {
                return said;
            }
        }
        self.ahead_us = Some(to_signed(at).saturating_sub(to_signed(own + self.skipped)));
        own
    }

    /// Returns the time that the run's clock shows when the VM's clock shows `at`; `None`: unknown.
    #[must_use]
    pub(crate) fn of_run(&self, at: Time) -> Option<Time> {
        Some(moved_by(at + self.skipped, self.ahead_us?))
    }

    /// Stops the clock at `at`.
    pub(crate) fn freeze_at(&mut self, at: Time) {
        self.frozen_since = Some(at);
    }

    /// Lets the stopped clock run again; the time from its stop to `at` doesn't count.
    pub(crate) fn thaw_at(&mut self, at: Time) {
        if let Some(since) = self.frozen_since.take() {
            self.skipped += at.since(since);
        }
    }

    /// Returns the time spent in hibernation so far.
    #[must_use]
    pub(crate) const fn hibernated_time(&self) -> Span {
        self.skipped
    }
}

fn to_signed(at: Time) -> i64 {
    i64::try_from(at.as_micros()).unwrap_or(i64::MAX)
}

fn moved_by(at: Time, by_us: i64) -> Time {
    Time::from_micros(at.as_micros().saturating_add_signed(by_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        base: Instant,
        came_ms: u64,
        late_ms: u64,
        at_s: impl Into<Option<u64>>,
    ) -> CommandStamp {
        let at = at_s.into().map(Time::from_secs);
        let came = base + Duration::from_millis(came_ms);
        CommandStamp { came, late: Duration::from_millis(late_ms), at }
    }

    #[test]
    fn what_was_decided_together_has_one_time_however_late_it_comes() {
        let base = Instant::now();
        // At speed-up 10, the run's clock showing 100 s at the base.
        let mut clock = VmClock::new(Speedup::times_real(10), &asked(base, 7, 7, 100));
        for (came, late) in [(1000, 0), (1020, 19), (1030, 31)] {
            assert_eq!(clock.note_decided(&asked(base, came, late, 110)), Time::from_secs(10));
        }
        // Hibernated from 120 to 150 s, each heard of a little late.
        let frozen = clock.note_decided(&asked(base, 2003, 1, 120));
        clock.freeze_at(frozen);
        let thawed = clock.note_decided(&asked(base, 5009, 2, 150));
        clock.thaw_at(thawed);
        assert_eq!((frozen, thawed), (Time::from_secs(20), Time::from_secs(50)));
        assert_eq!(clock.hibernated_time(), Span::from_secs(30));
        assert_eq!(clock.note_decided(&asked(base, 6010, 0, 160)), Time::from_secs(30));
        assert_eq!(clock.instant_of(Time::from_secs(30)), base + Duration::from_secs(6));
        assert_eq!(clock.of_run(Time::from_secs(30)), Some(Time::from_secs(160)));
    }

    #[test]
    fn a_clock_that_stood_still_is_followed_from_where_it_is() {
        let base = Instant::now();
        let mut clock = VmClock::new(Speedup::times_real(10), &asked(base, 0, 0, 100));
        // The coordinator was away for 3 s of real time.
        assert_eq!(clock.note_decided(&asked(base, 5000, 0, 120)), Time::from_secs(50));
        assert_eq!(clock.note_decided(&asked(base, 6010, 0, 130)), Time::from_secs(60));
        // A command that does not say when it was decided on.
        assert_eq!(clock.note_decided(&asked(base, 7000, 0, None)), Time::from_secs(70));
    }

    #[test]
    fn a_clock_of_the_first_seconds_is_followed_after_a_longer_absence() {
        let base = Instant::now();
        // The VM is of the run's first instant, and the coordinator was away for 30 s.
        let mut clock = VmClock::new(Speedup::times_real(10), &asked(base, 0, 0, 0));
        assert_eq!(clock.note_decided(&asked(base, 1020, 19, 10)), Time::from_secs(10));
        assert_eq!(clock.note_decided(&asked(base, 32_000, 0, 20)), Time::from_secs(320));
        for (came, late, at) in [(33_000, 0, 30), (33_019, 18, 30), (33_031, 30, 30)] {
            assert_eq!(clock.note_decided(&asked(base, came, late, at)), Time::from_secs(330));
        }
        assert_eq!(clock.of_run(Time::from_secs(330)), Some(Time::from_secs(30)));
    }
}
