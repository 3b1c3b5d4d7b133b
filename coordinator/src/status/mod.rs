//! The state of a run and of its coordinator, as whoever looks on is shown it.

pub(crate) mod progress;
pub(crate) mod vitals;
