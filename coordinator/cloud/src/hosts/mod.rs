//! Hosts, their free room, and the choice of a host for each VM: filter, weigh, select.

mod cost;
mod fleet;
mod host;
mod index;
mod placer;
mod plain;
mod ranked;
mod rule;
mod scheduler;
pub mod tables;
#[cfg(test)]
mod tests;
mod tiers;
mod victims;
mod views;
mod weigh;

pub use cost::CostName;
pub use fleet::{Fleet, Yields};
pub use host::Host;
pub use placer::{Placer, Placing, Want};
pub use plain::Plain;
pub use rule::{
    Filter, Placement, PlacementRule, PlacerName, SchedulerName, States, Ties, VictimTies,
};
pub use scheduler::Scheduler;
pub use tiers::{Placed, Tiers};
pub use weigh::{Weighed, Weigher};
