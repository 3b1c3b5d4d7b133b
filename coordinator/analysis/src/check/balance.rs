//! Bounds on the credit balance of a burstable VM: from what it earned and can have spent since its
//! last report.

use dormouse_cloud::BurstableTerms;
use dormouse_units::{Credits, Span, Time};

/// Least and greatest CPU use of a VM, summed over its vCPUs, in millionths of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UseBounds {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// Last reported credit balance of a VM, and bounds on what it has spent since.
#[derive(Clone, Debug)]
pub(super) struct BalanceBounds {
    burstable: BurstableTerms,
    said: (Time, Credits),
    /// Time by which the last report may have been delayed because the coordinator was away.
    held_up: Span,
    /// Time up to which CPU use is added up in `used`: the least and the greatest use since the
    /// last report, in vCPU-microseconds × millionths.
    until: Time,
    used: (u128, u128),
}

/// Greatest rounding error in `used`, an amount of CPU use: rates are rounded to millionths, and times to microseconds.
const fn rounding_error(used: u128) -> u128 {
    4 + used / 100_000
}

impl BalanceBounds {
    /// Balance of a burstable VM that was launched at `launched` with its initial credits.
    pub(super) fn new(burstable: BurstableTerms, launched: Time) -> Self {
        let initial = burstable.initial.min(burstable.cap);
        Self {
            burstable,
            said: (launched, initial),
            held_up: Span::ZERO,
            until: launched,
            used: (0, 0),
        }
    }

    /// Adds the VM's CPU use between the last call and `now`, given its bounds `of`.
    pub(super) fn pass(&mut self, now: Time, of: UseBounds) {
        let us = u128::from(now.since(self.until).as_micros());
        self.until = now;
        self.used.0 += us * u128::from(of.least);
        self.used.1 += us * u128::from(of.most);
    }

    /// Checks a newly reported balance and returns what is wrong with it. In a live run the
    /// previous report may have been `lateness` late and this one punctual: the VM then earned
    /// credits for that much longer, and its least use is unknown, since a report delayed by a lost
    /// connection describes an earlier time. The new report may have waited another `held_up` while
    /// the coordinator was away. A balance that carries a time, `as_of`, is checked for that time.
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
        let BurstableTerms { earned_per_hour, cap, .. } = self.burstable;
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
        let rounding = rounding_error(most);
        // What is earned above the cap is lost, at whatever time.
        let fewest = (had_us + earned(us)).min(cap).saturating_sub(most);
        // A VM that may have been without credits for a while used less than its tasks ask for.
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
        let burstable = BurstableTerms::new(dormouse_units::Ppm::ZERO, Credits::whole_credits(60));
        let (late, away) = (Span::from_secs(3), Span::from_secs(300));
        let said = |held_up| {
            let mut balance = BalanceBounds::new(burstable, Time::ZERO);
            let mut says = |at, credits, held_up| {
                let credits = (Credits::whole_credits(credits), None);
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
        let burstable = BurstableTerms::new(dormouse_units::Ppm::ZERO, Credits::whole_credits(60));
        let late = (Span::from_secs(3), Span::ZERO);
        // Its coordinator stood still from 300 s to 600 s, and no restart says so.
        let told = |as_of: Option<u64>, then: u64| {
            let mut balance = BalanceBounds::new(burstable, Time::ZERO);
            let mut says = |at, credits, as_of: Option<u64>| {
                let said = (Credits::whole_credits(credits), as_of.map(Time::from_secs));
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
