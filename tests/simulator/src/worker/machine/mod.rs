//! The simulated host of a worker: vCPUs, processes, CRIU and a store in memory. The agent's owner of VMs works on
//! these as it works on control groups.

mod backend;
mod launches;
mod process;
mod vcpus;
mod vm;

pub(super) use backend::SimulatedHost;
