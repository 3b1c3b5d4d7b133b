//! The agent: the process that dials a coordinator and plays VMs for it.
//!
//! ```text
//! session thread                       main runtime
//!   dial, number, acknowledge, beat      life: one incarnation
//!        │  Heard ────────────────────▶    │ commands
//!        │                                 ▼
//!        │                               vms: routes them, supervises
//!        │                                 │ Ask
//!        │                                 ▼
//!        ◀──────────────────── Report    vm: one actor per VM
//!                                          │ blocking threads
//!                                          ▼
//!                                        cgroup, process, checkpointer
//! ```
//!
//! The session has a thread and a runtime of its own, so that nothing the VMs do delays a heartbeat. Each VM has one
//! owner, an actor that takes commands in their order; nobody else touches its control groups or processes while it
//! lives. What takes long (a process being born, CRIU, a transfer) runs in a thread and reports back as a message. An
//! owner that fails is the end of its VM and of nothing else: all resources of a VM are recorded beside its owner
//! (`vm/resources.rs`).
//!
//! What a VM *should* do is decided by [`dormouse_vm::Model`]; here it is made so.

/// Tracing target of messages to the user about a worker that goes well.
pub const NEWS: &str = "news";

mod bounds;
mod cell;
mod config;
mod cores;
mod error;
mod faults;
mod gate;
mod held;
mod host;
pub mod in_process;
mod launch;
mod life;
mod live;
mod load;
mod machine;
mod measure;
mod memory;
mod noop;
mod own;
mod parent;
mod places;
mod prepare;
mod repeat;
mod report;
mod run;
mod secret;
mod session;
mod snapshot;
mod test_fault;
mod threads;
mod transfer;
pub mod untrusted;
mod verdict;
mod vm;
mod vms;
mod watch;

pub use cell::find_ssh_server;
pub use config::{AgentConfig, available_millicores};
pub use error::{AgentError, Result};
pub use memory::available_memory;
pub use prepare::{PreparedWorker, prepare_process, raise_priority};
pub use run::{AgentEnd, run};
pub use secret::{read_token, read_token_within};

pub(crate) use host::limit;
pub(crate) use launch::{PROGRESS, RESULT};
pub(crate) use report::explain_error;
