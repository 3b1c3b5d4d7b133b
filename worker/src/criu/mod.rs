//! CRIU: our own client of `criu swrk`, on the message types rust-criu generated.
//!
//! Each call starts one `criu swrk` on a socket pair, so nothing is shared between calls.
//! Every call has a deadline, at which CRIU and what it made is killed and reaped.
//!
//! Callers of [`Criu::dump`] lift the VM's CPU quota first
//! ([`Vm::lift_quota`](crate::cgroup::Vm::lift_quota)): CRIU runs code inside the task, and a
//! throttled task makes it wait. They must not freeze the VM: CRIU stops the tasks itself.

mod client;
mod error;
mod place;
mod probe;
mod scratch;
mod session;

pub use client::{AfterDump, Criu, Step};
pub use error::{Error, Result};
pub use place::find_criu;
pub use probe::{Probe, Version};
