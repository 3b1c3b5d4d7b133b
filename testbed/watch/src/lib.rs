//! Watching a run: its live page and its metrics.
//!
//! A run is followed by its log (`source`): its coordinator sends events as they become durable, or a virtual run
//! writes them. The steps are folded into the picture that a page draws ([`picture`]); [`server`] sends the picture to
//! pages, and people's acts to the run's coordinator (`desk`). Another fold turns the steps into metrics for Prometheus
//! ([`metrics`]).

mod about;
mod desk;
mod followed;
mod happenings;
pub mod metrics;
pub mod picture;
pub mod server;
mod source;

pub use desk::{InterruptionRequest, WantedAction, WantedTarget};
pub use followed::FollowedRun;
