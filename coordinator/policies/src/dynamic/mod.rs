//! The dynamic scheduling module (Burst-HADS III-D to III-F): scheduling once VMs run.

mod cluster_view;
mod cycles;
mod lateness;
mod migration;
mod one_for_one;
mod postponement;
mod scheduled_vm;
mod scheduler;
mod sites;
mod stealing;
mod takeover_forecast;
mod takeover_vms;
mod token;
mod trial_fleet;

#[cfg(test)]
pub(crate) use {postponement::latest_migration, takeover_forecast::TakeoverForecast};

pub(crate) use cycles::cycle_end;
pub(crate) use scheduler::{BagScheduler, SchedulerParts};
pub(crate) use stealing::StealingRule;
