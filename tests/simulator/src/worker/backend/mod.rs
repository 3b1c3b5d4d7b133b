//! The simulated host of a worker: an implementation of the agent's `MachineBackend` over the machine in memory, with the
//! time that each operation takes and the ways in which it fails. All decisions about VMs and tasks are the agent's.

mod births;
mod dumps;
mod host;
mod vm;

pub(super) use host::Host;
