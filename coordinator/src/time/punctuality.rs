//! Whether the clock and the journal are on time.

use std::time::Duration;

use crate::time::delays::DelayCounts;

/// Delays of the clock and the journal, shared by those that measure them, the conductor that reports them, and
/// observers.
#[derive(Debug, Default)]
pub(crate) struct Punctuality {
    pub(crate) clock: DelayCounts,
    pub(crate) journal: DelayCounts,
}

impl Punctuality {
    /// Records by how much real time the conductor's alarm rang too late.
    pub(crate) fn alarm_rang(&self, late: Duration) {
        self.clock.add_delay(late);
    }

    /// Records the real time from the moment when the journal got a step until the step was durable.
    pub(crate) fn step_written(&self, after: Duration) {
        self.journal.add_delay(after);
    }

    /// Returns the longest delays of the clock and of the journal, in microseconds.
    pub(crate) fn worst_us(&self) -> (u64, u64) {
        (self.clock.worst_us(), self.journal.worst_us())
    }
}
