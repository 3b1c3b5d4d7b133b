//! The JSON files of the Burst-HADS artifact, as they are; other keys in them are ignored.

mod env;
mod job;
mod plan;

pub use env::types;
pub use job::tasks;
pub use plan::planned_vms;

use dormouse_units::Bytes;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schemas have their ranges"
)]
fn round_bytes(bytes: f64) -> Bytes {
    Bytes::new(bytes.round() as u64)
}
