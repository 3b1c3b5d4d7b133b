//! A run beside its twin: the same run in virtual time, with the interruptions that it really had.
//! What differs is the emulation's doing, and nothing else.

mod again;
mod bag;
mod divergence;
mod exact;
mod given;
mod jobs;
mod measured;
mod moment;
mod spread;
mod value;

pub use again::decided_again;
pub use bag::twin_of_bag;
pub use divergence::{Decided, Divergence};
pub use exact::TwoTier;
pub use given::Given;
pub use jobs::{has_begun, twin_of_jobs};
pub use measured::{Measured, Moves};
pub use moment::Moment;
pub use spread::Spread;
pub use value::{About, Both, Count, Side, Standing, TaskRow, Twin, VmRow, VmSide};
