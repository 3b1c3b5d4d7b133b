//! The places where a worker keeps things, under the same paths on every worker.
//!
//! A CRIU image records absolute paths: of the program, the directory, the open files. For a
//! checkpoint of one worker to be restored by another, with another directory, these
//! have to be equal. So each worker enters a mount namespace of its own, mounts a tmpfs
//! on `/run`, and binds its directory to [`ROOT`]:
//!
//! ```text
//! /run/dormouse/tasks/<run>/<task>/           a task's directory: output, progress, result
//! /run/dormouse/programs/<digest>/<name>      task programs, named by their contents
//! /run/dormouse/checkpoints/<run>/<task>/<n>/ checkpoints
//! ```
//!
//! The tmpfs serves CRIU too, which keeps its findings about the kernel in `/run/criu.kdat`, but only on a tmpfs;
//! without it every call takes about 25 ms more.

mod error;
mod leases;
mod mounts;
mod name;
mod site;
mod writable;

pub use error::{Result, WorkspaceError};
pub use leases::{LeaseError, UserLeases};
pub use mounts::private_run_tmpfs;
pub use name::TaskName;
pub(crate) use site::give_to;
pub use site::{ROOT, Workspace};
pub use writable::make_kernel_files_writable;
