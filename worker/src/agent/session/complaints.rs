//! Logging that a coordinator can't be reached: at once, and then ever more rarely.

use std::time::Duration;

use tokio::time::Instant;

/// Time after the first log message about a failure in which the failure isn't logged again; it doubles with each message.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// Spacing of log messages about the same failure.
#[derive(Debug, Default)]
pub(crate) struct ComplaintPacing {
    quiet: Option<(Instant, Duration)>,
}

impl ComplaintPacing {
    /// Records a failure at the time `now`; returns whether to log it.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let (due, quiet_for) = match self.quiet {
            None => (true, FIRST),
            Some((until, quiet_for)) => (now >= until, quiet_for),
        };
        if due {
            self.quiet = Some((now + quiet_for, (2 * quiet_for).min(LONGEST)));
        }
        due
    }

    /// Records that the failure is over; returns whether it was logged before.
    pub(crate) fn are_over(&mut self) -> bool {
        self.quiet.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_being_wrong_is_said_ever_more_seldom() {
        let (mut complaints, begun) = (ComplaintPacing::default(), Instant::now());
        let mut said = Vec::new();
        for second in 0..200 {
            if complaints.is_due(begun + Duration::from_secs(second)) {
                said.push(second);
            }
        }
        assert_eq!(said, [0, 2, 6, 14, 30, 62, 122, 182]);
        assert!(complaints.are_over() && !complaints.are_over());
        assert!(complaints.is_due(begun), "what is wrong again is said at once");
    }
}
