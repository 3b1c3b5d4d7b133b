//! The `dormouse` command: what a user types, live runs, and a host's calibration.

pub mod calibrate;
mod called;
pub mod cli;
mod endpoint;
pub mod live;
pub mod measure;
mod said;
pub mod schedulers;
mod two_tier;
