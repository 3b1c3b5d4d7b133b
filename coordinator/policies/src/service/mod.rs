//! What a service that runs jobs on VMs of known lifetimes decides (bathtub paper, sections 4.1 and 4.2).

mod reuse;
mod running_time;

pub use reuse::{Reuse, ReusePolicy};
pub use running_time::{lost, running_time, wasted};
