//! Simulated workers: the real agent code, over a host in memory.
//!
//! A [`SimulatedWorker`] is one operating-system process of a worker. The session, the reading of commands, the
//! supervisor of VMs and the owner of each VM are the agent's own code. The host is simulated (`machine/`): vCPUs that
//! compute at their quotas, processes, CRIU and the local store, with the time that each operation takes and the ways
//! in which it fails.

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
