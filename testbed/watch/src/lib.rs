//! Looking on at a run: its live page, and its metrics.
//!
//! A run is followed by its log (`source`), whoever writes that: its coordinator, which gives the events as
//! they become durable, or a run in virtual time. A fold of its steps says what a page draws ([`picture`]);
//! [`server`] gives pages what it says, and takes what people do there to the run's coordinator (`desk`). Another fold of them is for
//! Prometheus ([`metrics`]).

mod about;
mod desk;
mod followed;
mod happenings;
pub mod metrics;
pub mod picture;
pub mod server;
mod source;

pub use desk::{Interruption, WantedAction, WantedTarget};
pub use followed::Followed;
