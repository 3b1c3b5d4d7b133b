//! Processes: who they are, how a task's program is started, and what guarantees that
//! nothing outlives the worker.
//!
//! A task is the init of a PID namespace and leads a session of its own; its stdin is
//! `/dev/null`, its stdout and stderr are regular files, and it inherits no other descriptor.
//! That is what CRIU can checkpoint, and what can be restored anywhere, since PID 1 of a new
//! namespace is always free.
//!
//! PDEATHSIG does not guard against orphans: it is tied to the parent *thread*, and a restored
//! process has none. A [`Guardian`](crate::guardian::Guardian) does: a tiny process that waits for the worker's end,
//! however it comes, and then kills the worker's whole tree of control groups.

mod clone;
mod error;
mod exec;
pub(crate) mod helper;
mod identity;
mod memory;
mod own_proc;
pub(crate) mod pidfd;
mod ranks;
mod spawn;
mod stop;
mod task;
pub(crate) mod threads;

pub use error::{ProcessError, Result};
pub use helper::HelpedTask;
pub use identity::{ProcessIdentity, pid_namespace};
pub use memory::resident_bytes;
pub(crate) use own_proc::mount_processes;
pub(crate) use ranks::init_among_children;
pub use ranks::rank_pids;
pub use spawn::ProcessGroups;
pub use spawn::ProgramCommand;
pub use stop::{ask_to_stop, await_stop, cpu_ns, resume_all, resume_process};
pub(crate) use task::reap_later;
pub use task::{ChildProcess, ProcessEnd};
