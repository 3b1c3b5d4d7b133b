//! Abilities of a host for live runs and their exactness, and the workers that run on the host.
//!
//! - [`doctor`]: what live runs need of it, found or missing, and how to fix that;
//! - [`calibration`]: how far its live tasks are from their virtual twins, by speed-up and load; the
//!   file that keeps it, and the speed-up that a live run takes from it;
//! - [`two_tier`]: what two VMs on one of its processors cost and gain each other;
//! - [`workers`]: worker processes of a run, started, revived and ended.
//!
//! All of it is measured or looked up here and said as typed values; how they are shown is their
//! user's matter.

pub mod calibration;
mod date;
pub mod doctor;
mod programs;
mod ticks;
pub mod two_tier;
pub mod workers;
