//! CRIU: our own client of `criu swrk`.
//!
//! `rpc.proto` is that of CRIU 4.2.1, under the licence in `LICENSE`; `rpc.rs` is generated from it. What CRIU restores
//! is checked twice: before, in its [`images`], and after, before its first instruction.
//!
//! Each call starts one `criu swrk` on a socket pair, so nothing is shared between calls. Every call has a deadline, at
//! which CRIU and the processes that it made are killed and reaped.
//!
//! Callers of [`CriuProgram::dump_process`] lift the VM's CPU quota first
//! ([`Vm::lift_quota`](crate::cgroup::Vm::lift_quota)): CRIU runs code inside the task, and a throttled task makes it
//! wait. The callers must not freeze the VM: CRIU stops the tasks itself.

mod client;
mod error;
pub(crate) mod images;
mod inspection;
mod keepsakes;
mod place;
mod probe;
mod request;
#[allow(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::enum_variant_names,
    clippy::use_self,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "generated code, of which a client needs a part"
)]
mod rpc;
mod scratch;
mod session;
mod status;

pub use client::{AfterDump, CriuProgram, DumpMoment, RestoreMoment};
pub use error::{CriuError, Result};
pub use keepsakes::{BoundThread, ExpiredTimer, TaskKeepsakes};
pub use place::find_criu;
pub use probe::{CriuProbe, CriuRelease};
pub use session::Step;
