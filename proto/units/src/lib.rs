//! The quantities and names that every part of Dormouse uses.
//!
//! Everything here is an integer in a small unit: no float is a key, a time or a ledger entry. This
//! crate depends on no other part of Dormouse.

mod by_id;
mod bytes;
mod cpus;
mod credits;
mod exact;
mod ids;
mod money;
mod named;
mod pattern;
mod printable;
mod seat;
mod share;
mod speedup;
mod stream;
mod time;
mod usage;
mod window;
pub mod wire;
pub mod written;

pub use by_id::ById;
pub use bytes::{Bytes, ParseBytesError};
pub use cpus::Cpus;
pub use credits::Credits;
pub use ids::{
    Attempt, CheckpointSeq, FaultId, HostId, Incarnation, RequestId, TaskId, TenantId, TypeName,
    VmId, ZoneName,
};
pub use money::{Money, ParsePriceError, Price};
pub use named::find_repeated;
pub use pattern::is_like;
pub use printable::{one_line, printable};
pub use seat::{Mode, Seats, Tier};
pub use share::Ppm;
pub use speedup::Speedup;
pub use stream::RandomStream;
pub use time::{ParseSpanError, Span, Time};
pub use usage::Usage;
pub use window::Window;
