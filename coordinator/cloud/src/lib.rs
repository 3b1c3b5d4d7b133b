//! The provider as a pure state machine: what instance types there are and what
//! they cost, where a VM goes, when it is taken away, and what is owed.
//!
//! Nothing here reads a clock, does I/O or draws from an unseeded generator:
//! every entry point is told the time, and seeded streams are the one source of chance.

mod billing;
mod catalogue;
mod interruption;
mod placement;
mod provider;

pub use billing::{Charge, Meter};
pub use catalogue::{Burstable, Catalogue, InstanceType, Limits, Market};
pub use interruption::{Action, Interruption, InterruptionModel, Interruptions, Scope, Target};
pub use placement::{Host, Placement};
pub use provider::{LaunchError, Launched, Provider, Vm, VmState};
