//! The worker agent: emulated VMs as cgroups, processes, CRIU checkpoints, gRPC session.
//!
//! The Linux layer, bottom up; every call blocks and may come from any thread:
//! - [`cgroup`]: the control groups of emulated VMs;
//! - [`jail`]: the confinement of tasks, and the namespaces for it;
//! - [`process`]: starting tasks, and leaving none behind;
//! - [`workspace`]: the worker's directory, under the same paths on every worker;
//! - [`criu`]: dump and restore;
//! - [`picture`]: what programs see of themselves, before a checkpoint and after a restore;
//! - [`directory`]: what is in a task's directory, and the [`contents`] that it begins with;
//! - [`store`]: checkpoints on disk and on the wire;
//! - [`checkpointer`]: taking and restoring checkpoints with the modules above;
//! - [`metadata`]: the metadata that programs on a VM read, as on a cloud;
//! - [`guardian`]: the process that removes all of this if the worker dies;
//! - [`cleanup`]: removing what a crashed worker left;
//! - [`place`]: the host, container or unit that it is in, and what is added there for what is lacking.
//!
//! On top of it:
//! - [`agent`]: the session with the coordinator, and one owner for each VM;
//! - [`proof`]: whether all of it works on this host.
//!
//! The order at a worker's start, before its first thread: detect the control groups, make
//! them writable, start the guardian, enter the workspace; then clean up, and create the tree.

/// Tracing target of spans: of dumps, restores and transfers. Without a subscriber, a span costs one comparison.
pub const SPANS: &str = "spans";

pub mod agent;
pub mod cgroup;
pub mod checkpointer;
pub mod cleanup;
pub mod contents;
pub mod criu;
pub mod directory;
pub mod guardian;
pub mod jail;
pub mod metadata;
mod micros;
pub mod picture;
pub mod place;
pub mod process;
pub mod proof;
mod sparse;
pub mod store;
pub mod workspace;
