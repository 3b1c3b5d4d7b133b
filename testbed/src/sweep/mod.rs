//! Many independent, seeded runs in virtual time: on all cores, resumable, in parts.

mod cell;
mod error;

mod folder;
mod grid;
mod metrics;
mod shard;
mod shared;
mod spec;
mod work;

pub use cell::Cell;
pub use error::SweepError;
pub use folder::Folder;
pub use grid::Sweep;
pub use metrics::{METRICS, Metric};
pub use shard::Shard;
pub use shared::Shared;
pub use spec::{Reproduction, Spec};
pub use work::{Samples, Work};
