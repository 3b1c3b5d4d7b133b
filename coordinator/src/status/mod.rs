//! State of a run and of its coordinator, as shown to observers.

pub(crate) mod progress;
pub(crate) mod vitals;
