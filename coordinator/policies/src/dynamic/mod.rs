//! The dynamic scheduling module (Burst-HADS III-D to III-F): scheduling once VMs run.

mod cycles;
mod floor;
mod foresight;
mod lateness;
mod machine;
mod migration;
mod one_for_one;
mod postponement;
mod rescue;
mod rescuers;
mod scheduler;
mod sites;
mod stealing;
mod token;

#[cfg(test)]
pub(crate) use {foresight::TakeoverForecast, postponement::latest_migration};

pub(crate) use cycles::cycle_end;
pub(crate) use scheduler::{BagScheduler, SchedulerParts};
pub(crate) use stealing::StealingRule;
