//! Refusals of workers that try again: one warning for a burst of refusals.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time without a refusal after which a burst of refusals is over.
const QUIET: Duration = Duration::from_secs(60);

/// Time of the last refusal, which tells the first of a burst from later ones.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    last: Mutex<Option<Instant>>,
}

impl RefusalLog {
    /// Records a refusal at `now`; returns whether it begins a burst.
    pub(crate) fn begins_burst(&self, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace(now);
        before.is_none_or(|before| now.saturating_duration_since(before) > QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_refusals_is_said_once() {
        let (refusals, start) = (RefusalLog::default(), Instant::now());
        let at = |s| refusals.begins_burst(start + Duration::from_secs(s));
        assert_eq!([0, 1, 40, 99].map(at), [true, false, false, false]);
        assert_eq!([160, 161].map(at), [true, false]);
    }
}
