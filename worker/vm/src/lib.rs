//! One emulated VM as a pure state machine: which task sits on which vCPU, how
//! fast each may run now, and what that does to the CPU credits.
//!
//! [`Machine`] says what should be and [`Model`] computes what comes of it: the VM itself in
//! virtual time, and beside a real VM what that is held to. [`Ledger`] is the difference.

mod bucket;
mod ledger;
mod machine;
mod model;

pub use bucket::{Bucket, CreditSpec};
pub use ledger::{Ledger, Pace, Quota};
pub use machine::{Machine, MachineSpec, Mode, Seat, SeatError, Tier};
pub use model::{Hold, Model, Progress, Work, WorkEvent};
