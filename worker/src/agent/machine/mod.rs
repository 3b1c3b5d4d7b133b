//! What a VM and its tasks are made of, as their owner sees it: on a host control groups, processes, CRIU and files;
//! in the simulator state in memory.

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
