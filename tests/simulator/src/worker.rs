//! Simulated workers: the real session client and the real reading of commands, over machines in memory.
//!
//! A [`SimulatedWorker`] is one operating-system process of a worker. What an agent has of a host is
//! simulated: the VMs' processes, the local checkpoints, the time that each of these takes and the ways in
//! which each fails. The life of the attempts on a VM is the real [`dormouse_vm::life`], how far each
//! should be is said by the real [`dormouse_vm::Model`], and the clocks of VMs are the agent's own.

mod chance;
mod fence;
mod honesty;
mod host;
mod image;
mod images;
mod line;
mod machine;
mod machines;
mod plan;
mod process;
mod shared;
mod uplink;

#[cfg(test)]
mod tests;

pub use honesty::Honesty;
pub use plan::{Rates, WorkerPlan};
pub use process::SimulatedWorker;
pub use shared::Leftovers;
pub use uplink::Uplink;
