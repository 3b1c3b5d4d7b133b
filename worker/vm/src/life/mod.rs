//! State machine of the attempts on one VM: `(now, event) → effects`.
//!
//! [`AttemptTable`] receives the coordinator's commands, the outcomes of its own effects, and the passing of time; it
//! returns what is to be done next and what is to be reported. Its caller carries that out, with processes and CRIU or
//! in a test's memory, and decides nothing.

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
