//! The machine of a VM and its tasks, as the VM's owner sees it: control groups, processes, CRIU and files on a host;
//! state in memory in the simulator.

mod backend;
mod births;
mod checkpoints;
mod context;
mod dumps;
mod host;
mod launches;
mod launching;
mod moments;
mod process;
mod vm;

pub use backend::{BoxedFuture, MachineBackend};
pub use births::{Born, LaunchSteps};
pub use checkpoints::{AttemptDump, CheckpointUpload, DumpWay, TakenCheckpoint};
pub use context::LifeContext;
pub use dumps::{DumpFailure, DumpSteps, dump_and_leave, dump_program};
pub(crate) use host::{HostBackend, HostVm, lane_count, reap_killed};
pub use launches::{AttemptBirth, AttemptOrder, LaunchPlan, LaunchWay};
pub(crate) use launches::{OwnKeep, ProgramNotice};
pub use launching::launch_program;
pub(crate) use launching::turn_at_criu;
pub use moments::{CountedWork, DumpMoments, OvertakenDump};
pub use process::{ProgressPage, TaskProcess};
pub use vm::{CellMachine, DumpMachine, LaunchMachine, OwnMachine, QuotaLift, VmMachine};
