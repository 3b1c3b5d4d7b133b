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
pub use fleet::{HostFleet, YieldedRoom};
pub use host::ResourceVector;
pub use placer::{PlacementRequest, Placer, Placing};
pub use plain::PlainScheduler;
pub use rule::{
    HostFilter, Placement, PlacementRule, PlacerName, SchedulerName, TieBreak, VictimTies,
    ViewSource,
};
pub use scheduler::HostScheduler;
pub use tiers::{HostTiers, PlacedVm};
pub use weigh::{ScaledWeigher, Weigher};
