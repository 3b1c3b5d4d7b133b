//! The life of the attempts on one VM: `(now, event) → effects`.
//!
//! [`AttemptTable`] hears what the coordinator commands, what has become of what it wanted done, and that
//! time has passed; it says what is to be done next, and what is to be reported. Who carries that
//! out, with processes and CRIU or in a test's memory, decides nothing.

mod attempt;
mod attempt_table;
mod checkpoints;
mod ends;
mod event;
mod launches;
mod moves;
mod slots;
mod stops;
mod vm;

pub use attempt::{AttemptKind, AttemptPhase, Key};
pub use attempt_table::{AttemptLimits, AttemptTable};
pub use event::{
    AttemptOutcome, AttemptStart, BirthOutcome, DepartureOutcome, DumpOutcome, KeptWork,
    LaunchFailure, VmEffect, VmEvent,
};
pub use slots::{AttemptSeat, TierSlot, VmSlots};
