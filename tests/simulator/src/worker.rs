//! Simulated workers: the real agent code, over a host in memory.
//!
//! A [`SimulatedWorker`] is one operating-system process of a worker. The session, the reading of commands, the
//! supervisor of VMs, the owner of each VM, and the launches, dumps and judgements of programs are the agent's own code.
//! It orders a host in memory through the same traits as a real one (`backend/`), with the time that each operation takes
//! and the ways in which it fails; under it is a model of a kernel and a disk (`machine/`).

mod backend;
mod chance;
mod faults;
mod fence;
mod honesty;
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
