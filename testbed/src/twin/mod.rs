//! A live run beside its twin: the same run in virtual time, with the interruptions that it
//! really had. What differs is the emulation's doing, and nothing else.

mod again;
mod bag;
mod compare;
mod csv;
mod divergence;
mod error;
mod given;
mod jobs;
mod json;
mod measured;
mod moment;
mod spread;
mod table;
mod two_tier;
mod value;
mod words;

pub use compare::twin_of;
pub use divergence::{Decided, Divergence};
pub use error::TwinError;
pub use moment::Moment;
pub use spread::Spread;
pub use value::{Both, Count, Side, Standing, TaskRow, Twin, VmRow, VmSide};
pub(crate) use words::event as event_in_words;
