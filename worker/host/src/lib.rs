//! Abilities of a host for live runs and their exactness, and the workers that run on the host.
//!
//! - [`doctor`]: the host's preconditions for live runs, found or missing, and the remedies;
//! - [`calibration`]: timing errors of live tasks relative to the same tasks in virtual time, by
//!   speed-up and load; the file with these errors, and the choice of a live run's speed-up by them;
//! - [`two_tier`]: the cost and gain of two VMs that share a processor of the host;
//! - [`workers`]: worker processes of a run, started, restarted and ended.
//!
//! This crate measures or looks up all of these facts and returns them as typed values; its callers
//! decide how to show them.

pub mod calibration;
mod date;
pub mod doctor;
mod programs;
mod ticks;
pub mod two_tier;
pub mod workers;
