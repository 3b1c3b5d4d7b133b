//! The dynamic scheduling module (Burst-HADS III-D to III-F): what happens once VMs run.

mod cycles;
mod floor;
mod machine;
mod migration;
mod postponement;
mod scheduler;
mod sites;
mod stealing;
mod token;

pub(crate) use scheduler::BagScheduler;
