//! Whether the clock and the journal are on time.

use std::time::Duration;

use crate::time::delays::DelayCounts;

/// Shared by the parts that are measured, the conductor, which says what was found, and whoever
/// looks on.
#[derive(Debug, Default)]
pub(crate) struct Punctuality {
    pub(crate) clock: DelayCounts,
    pub(crate) journal: DelayCounts,
}

impl Punctuality {
    /// The alarm rang so late.
    pub(crate) fn alarm_rang(&self, late: Duration) {
        self.clock.add_delay(late);
    }

    /// A step was durable so long after it was made.
    pub(crate) fn step_written(&self, after: Duration) {
        self.journal.add_delay(after);
    }

    /// The worst of the clock and of the journal, in microseconds.
    pub(crate) fn worst_us(&self) -> (u64, u64) {
        (self.clock.worst_us(), self.journal.worst_us())
    }
}
