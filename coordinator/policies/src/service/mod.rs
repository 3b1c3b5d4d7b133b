//! A batch service on VMs of known lifetimes (bathtub paper, sections 4.1, 4.2 and 5): the rules
//! that it decides by, and the service itself.

mod bags;
mod cluster;
mod config;
mod job;
mod reuse;
mod running_time;
mod scheduler;
#[cfg(test)]
mod tests;

pub use config::ServiceConfig;
pub use reuse::{ReuseComparison, ReusePolicy};
pub use running_time::{lost, running_time, wasted};
pub(crate) use scheduler::BatchServicePolicy;
