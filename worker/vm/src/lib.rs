//! One emulated VM as a pure state machine: which task sits on which vCPU, how
//! fast each may run now, and what that does to the CPU credits.
//!
//! [`Machine`] says what should be; the agent makes it so with cgroups and feeds
//! back what was really used, [`Model`] computes it for virtual time.

mod bucket;
mod machine;
mod model;

pub use bucket::{Bucket, CreditSpec};
pub use machine::{Machine, MachineSpec, Mode, Seat, SeatError, Tier};
pub use model::{Model, Work, WorkEvent};
