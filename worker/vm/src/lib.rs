//! One emulated VM as a pure state machine: which task sits on which vCPU, how
//! fast each may run now, and what that does to the CPU credits.
//!
//! [`Machine`] says what should be and [`Model`] computes what comes of it: the VM itself in
//! virtual time, and beside a real VM what that is held to. [`Ledger`] is the difference.

mod bucket;
mod ledger;
mod machine;
mod model;
mod sharing;
mod two_tier;

pub use bucket::{Bucket, CreditSpec};
pub use ledger::{Ledger, Pace, Quota};
pub use machine::{Machine, MachineSpec, Seat, SeatError};
pub use model::{Hold, Model, Progress, Work, WorkEvent};
pub use sharing::Sharing;
pub use two_tier::{GangWork, TwoTierModel};
