//! Spans of real time as messages have them.

use std::time::Duration;

/// Returns a span in whole microseconds, or the largest number if it is longer.
pub(crate) fn whole_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
