//! The machine of a VM and its tasks, as the VM's owner sees it: control groups, processes, CRIU and files on a host;
//! state in memory in the simulator.

mod backend;
mod checkpoints;
mod context;
mod host;
mod launches;
mod launching;
mod process;
mod vm;

pub use backend::{BoxedFuture, MachineBackend};
pub use checkpoints::{CheckpointUpload, JobDump, JobLeave, TakenCheckpoint, TaskDump};
pub use context::LifeContext;
pub(crate) use host::{HostBackend, reap_killed};
pub use launches::{OwnKeep, ProgramNotice, TaskLaunch};
pub use launching::{Born, LaunchFuture, LaunchPlan, LaunchSteps, LaunchWay, launch_program};
pub use process::{ProgressPage, TaskProcess};
pub use vm::{QuotaLift, VmMachine};
