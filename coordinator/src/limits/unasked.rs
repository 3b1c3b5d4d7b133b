//! Bounds of the reports that a worker sends without a command.
//!
//! The number of answers is bounded by the number of commands. But reports of credits, shares or load come whenever the
//! worker likes, and reports of attempts that are over change nothing: each is still a line of the log, so that a
//! worker that sent them without end would fill the disk.

use std::time::Duration;

use dormouse_proto::v1;
use v1::report::Report as R;

use tokio::time::Instant;

/// Average number of unsolicited reports per second that a worker may send.
const PER_SECOND: u32 = 1_000;
/// Number of unsolicited reports that may come at once.
const BURST: u32 = 20_000;
/// Number of reports of one session of a worker that may change nothing: the worker still reports about an attempt
/// before it learns that the attempt is over.
const MOST_STALE: u32 = 10_000;

/// Unsolicited reports that a worker may still send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageAllowance {
    left: u32,
    refilled: Instant,
}

impl MessageAllowance {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: BURST, refilled: now }
    }

    /// Counts a report, if it is unsolicited.
    ///
    /// # Errors
    ///
    /// The worker has sent too many.
    pub(crate) fn take_report(&mut self, report: &v1::Report, now: Instant) -> Result<(), String> {
        if !matches!(report.report, Some(R::Credits(_) | R::VmShare(_) | R::HostLoad(_))) {
            return Ok(());
        }
        let step = Duration::from_secs(1) / PER_SECOND;
        let passed = now.saturating_duration_since(self.refilled);
        let more = u32::try_from(passed.as_nanos() / step.as_nanos()).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(more).min(BURST);
        self.refilled = if more > BURST { now } else { self.refilled + step * more };
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => {
                return Err(format!(
                    "it sends more than {PER_SECOND} unsolicited messages a second"
                ));
            }
        }
        Ok(())
    }
}

/// Count of a worker's reports that changed nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StaleReports(u32);

impl StaleReports {
    /// Counts one more report that changed nothing.
    pub(crate) const fn count_stale(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// Returns an explanation if the worker has sent more reports that changed nothing than a correct worker would.
    pub(crate) fn too_many(self) -> Option<String> {
        (self.0 > MOST_STALE)
            .then(|| format!("it reported {} times on what it has no part in", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_ends_and_a_steady_stream_does_not() {
        let report = |report| v1::Report { report: Some(report) };
        let load = report(R::HostLoad(v1::HostLoad::default()));
        let begun = Instant::now();
        let mut allowance = MessageAllowance::new(begun);
        let said = (0..).take_while(|_| allowance.take_report(&load, begun).is_ok()).count();
        assert_eq!(said, BURST as usize);
        // What is asked for is not counted.
        allowance
            .take_report(&report(R::VmCreated(v1::VmRef::default())), begun)
            .expect("an answer");
        for n in 1..=3 * BURST {
            let now = begun + Duration::from_millis(n.into());
            allowance.take_report(&load, now).expect("a thousand a second");
        }
        let end = begun + Duration::from_millis((3 * BURST).into());
        let no = allowance.take_report(&load, end).expect_err("one too many");
        assert!(no.contains("1000 unsolicited messages a second"), "{no}");
        // However long it was silent, it may not say more at once.
        let later = end + Duration::from_secs(1 << 40);
        let said = (0..).take_while(|_| allowance.take_report(&load, later).is_ok()).count();
        assert_eq!(said, BURST as usize);
    }

    #[test]
    fn what_changes_nothing_is_forgiven_a_while() {
        let mut stale = StaleReports::default();
        (0..MOST_STALE).for_each(|_| stale.count_stale());
        assert_eq!(stale.too_many(), None);
        stale.count_stale();
        assert!(stale.too_many().is_some_and(|why| why.contains("10001 times")));
    }
}
