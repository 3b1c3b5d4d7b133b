//! What credits a burstable VM can have, by what it has earned and can have used since it last said.

use dormouse_cloud::Burstable;
use dormouse_units::{Credits, Span, Time};

/// What a VM may use of its vCPUs, as a sum over them in millionths of one: the least and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// The credits of a VM as it said them last, and what it can have used since.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    burstable: Burstable,
    said: (Time, Credits),
    /// The time for which before that it may have been so, as its coordinator was away.
    held_up: Span,
    /// Up to when use is accounted for; what was used at least and at most, in vCPU-microseconds ×
    /// millionths.
    until: Time,
    used: (u128, u128),
}

/// What rates in whole millionths are off by in so much use, and times in whole microseconds.
const fn rounding(used: u128) -> u128 {
    4 + used / 100_000
}

impl Balance {
    /// Balance of a VM of a burstable type that was launched at this time.
    pub(super) fn new(burstable: Burstable, launched: Time) -> Self {
        let initial = burstable.initial.min(burstable.cap);
        Self {
            burstable,
            said: (launched, initial),
            held_up: Span::ZERO,
            until: launched,
            used: (0, 0),
        }
    }

    /// Time passes up to `now` at this use.
    pub(super) fn pass(&mut self, now: Time, of: Use) {
        let us = u128::from(now.since(self.until).as_micros());
        self.until = now;
        self.used.0 += us * u128::from(of.least);
        self.used.1 += us * u128::from(of.most);
    }

    /// What is wrong with a balance that is said now, by when use is accounted for. In a live run the
    /// report before may have been `lateness` late and this one on time: what can have been earned is
    /// that of a span so much longer, and of use nothing is known, as a report that a lost connection
    /// held up tells of a time before. What is said now may be `held_up` longer ago, the time that its
    /// coordinator was away. A balance that is said to be of an earlier time, `as_of`, is looked at as of then.
    pub(super) fn error_in(
        &mut self,
        now: Time,
        (balance, as_of): (Credits, Option<Time>),
        (lateness, held_up): (Span, Span),
    ) -> Option<String> {
        // The report before may have been late by as much.
        let earliest = self.said.0 - (lateness + self.held_up);
        if let Some(at) = as_of.filter(|at| *at > now || *at < earliest) {
            return Some(format!("it says what it held at {at}, and not after {earliest}"));
        }
        let (now, held_up) = as_of.map_or((now, held_up), |at| (at.max(self.said.0), Span::ZERO));
        let late = (lateness + std::mem::replace(&mut self.held_up, held_up)).as_micros();
        let Burstable { earned_per_hour, cap, .. } = self.burstable;
        let (since, had) = std::mem::replace(&mut self.said, (now, balance));
        let (least, most) = std::mem::take(&mut self.used);
        if balance > cap {
            return Some(format!("it holds {balance}, more than {cap}"));
        }
        let (us, late) = (u128::from(now.since(since).as_micros()), u128::from(late));
        let earned = |us: u128| u128::from(earned_per_hour.as_vcpu_micros()) * us / 3_600_000_000;
        let (had_us, cap) = (u128::from(had.as_vcpu_micros()), u128::from(cap.as_vcpu_micros()));
        let balance = u128::from(balance.as_vcpu_micros());
        let (is_live, most) = (lateness > Span::ZERO, most.div_ceil(1_000_000));
        let rounding = rounding(most);
        // What is earned above the cap is lost, whenever that was.
        let fewest = (had_us + earned(us)).min(cap).saturating_sub(most);
        // Where there may have been none for a while, less was used than would have been.
        let ran_out = had_us + earned(us) <= most;
        let least = if is_live || ran_out { 0 } else { least / 1_000_000 };
        let highest = (had_us + earned(us + late)).saturating_sub(least);
        let wrong = if balance > highest + rounding {
            "more than it can have earned"
        } else if balance + rounding < fewest && !is_live {
            "less than it can have used leaves"
        } else {
            return None;
        };
        let balance = self.said.1;
        Some(format!("it holds {balance} after {had} at {since}: {wrong}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_waited_for_its_coordinator_tells_of_a_time_before() {
        let burstable = Burstable::new(dormouse_units::Ppm::ZERO, Credits::whole(60));
        let (late, away) = (Span::from_secs(3), Span::from_secs(300));
        let said = |held_up| {
            let mut balance = Balance::new(burstable, Time::ZERO);
            let mut says = |at, credits, held_up| {
                let credits = (Credits::whole(credits), None);
                balance.error_in(Time::from_secs(at), credits, (late, held_up))
            };
            // Of 300 s, when the coordinator went; back since 600 s, it hears of that, and of now.
            assert_eq!(says(600, 5, held_up), None);
            says(610, 10, Span::ZERO)
        };
        assert_eq!(said(away), None);
        assert!(
            said(Span::ZERO).is_some_and(|wrong| wrong.contains("more than it can have earned"))
        );
    }

    #[test]
    fn a_report_that_says_of_when_it_is_is_looked_at_as_of_then() {
        let burstable = Burstable::new(dormouse_units::Ppm::ZERO, Credits::whole(60));
        let late = (Span::from_secs(3), Span::ZERO);
        // Its coordinator stood still from 300 s to 600 s, and no restart says so.
        let told = |as_of: Option<u64>, then: u64| {
            let mut balance = Balance::new(burstable, Time::ZERO);
            let mut says = |at, credits, as_of: Option<u64>| {
                let said = (Credits::whole(credits), as_of.map(Time::from_secs));
                balance.error_in(Time::from_secs(at), said, late)
            };
            says(600, 5, as_of).or_else(|| says(610, then, None))
        };
        assert_eq!(told(Some(300), 10), None);
        assert!(told(None, 10).is_some(), "nothing says that it was late");
        assert!(told(Some(300), 11).is_some(), "310 s earn less");
        assert!(told(Some(601), 5).is_some(), "that time has not come");
    }
}
