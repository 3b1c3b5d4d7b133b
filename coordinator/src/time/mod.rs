//! Time in the emulation beside the real: the dilated clock, what became of it while its coordinator was away,
//! and how late things were.

pub(crate) mod clock;
pub(crate) mod delays;
pub(crate) mod outage;
pub(crate) mod punctuality;
