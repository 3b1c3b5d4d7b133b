//! What a VM and its tasks are made of, as their owner sees it: on a host control groups, processes, CRIU and files;
//! in the simulator state in memory.

mod backend;
mod checkpoints;
mod context;
mod host;
mod launches;
mod process;
mod vm;

pub(crate) use backend::{BoxedFuture, MachineBackend};
pub(crate) use checkpoints::{CheckpointUpload, JobDump, JobLeave, TakenCheckpoint, TaskDump};
pub(crate) use context::LifeContext;
pub(crate) use host::{HostBackend, reap};
pub(crate) use launches::{OwnKeep, ProgramNotice, TaskLaunch};
pub(crate) use process::{ProgressPage, TaskProcess};
pub(crate) use vm::{QuotaLift, VmMachine};
