//! A user who ends it half-way.

use std::io;

use crate::live::Signals;

/// Whether this process was told to end, also between two runs. A live run hears of the same
/// signals: one that comes after this was asked and before a run begins ends that run.
#[derive(Debug)]
pub struct Stop(Signals);

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn listen() -> io::Result<Self> {
        Signals::of_this_process().map(Self)
    }

    /// Whether it was.
    #[must_use]
    pub fn told(&self) -> bool {
        self.0.any()
    }
}
