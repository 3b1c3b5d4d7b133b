//! A model of the machine under a worker: what a kernel does with vCPUs, quotas and priorities, with programs that compute,
//! and with processes that are frozen, stopped and killed; and a disk. It decides nothing about VMs and tasks: it does
//! what the agent orders.

mod disk;
mod handle;
mod processes;
mod programs;
mod vcpus;

pub(super) use disk::{CheckpointDisk, image_of};
pub(super) use handle::SimulatedProcess;
pub(super) use processes::{DEATH, NewProcess, VmKernel};
pub(super) use programs::SimulatedProgram;
#[cfg(test)]
use programs::SimulatedRank;
pub(super) use vcpus::Vcpus;
