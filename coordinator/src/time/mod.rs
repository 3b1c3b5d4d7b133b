//! Emulated and real time: the dilated clock, its state after the coordinator was away, and measured delays.

pub(crate) mod clock;
pub(crate) mod delays;
pub(crate) mod outage;
pub(crate) mod punctuality;
