//! Whether the clock and the journal are on time: the most that they were late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Shared by the parts that are measured and the conductor, which says what was found.
#[derive(Debug, Default)]
pub(crate) struct Punctuality {
    clock_us: AtomicU64,
    journal_us: AtomicU64,
}

impl Punctuality {
    /// The alarm rang so late.
    pub(crate) fn rang(&self, late: Duration) {
        self.clock_us.fetch_max(micros(late), Ordering::Relaxed);
    }

    /// A step was durable so long after it was made.
    pub(crate) fn wrote(&self, after: Duration) {
        self.journal_us.fetch_max(micros(after), Ordering::Relaxed);
    }

    /// The worst of the clock and of the journal, in microseconds.
    pub(crate) fn worst_us(&self) -> (u64, u64) {
        (self.clock_us.load(Ordering::Relaxed), self.journal_us.load(Ordering::Relaxed))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
