//! Whether the clock and the journal are on time.

use std::time::Duration;

use crate::time::delays::Delays;

/// Shared by the parts that are measured, the conductor, which says what was found, and whoever
/// looks on.
#[derive(Debug, Default)]
pub(crate) struct Punctuality {
    pub(crate) clock: Delays,
    pub(crate) journal: Delays,
}

impl Punctuality {
    /// The alarm rang so late.
    pub(crate) fn rang(&self, late: Duration) {
        self.clock.add(late);
    }

    /// A step was durable so long after it was made.
    pub(crate) fn wrote(&self, after: Duration) {
        self.journal.add(after);
    }

    /// The worst of the clock and of the journal, in microseconds.
    pub(crate) fn worst_us(&self) -> (u64, u64) {
        (self.clock.worst_us(), self.journal.worst_us())
    }
}
