//! Many independent, seeded runs in virtual time: on all cores, resumable, in parts.

mod cell;
mod error;
mod folder;
mod grid;
mod shard;
mod shared;
mod spec;
mod work;

pub use cell::Cell;
pub(crate) use cell::{digest_of, digest_of_file};
pub use error::{RunError, SweepError};
pub(crate) use folder::Folder;
pub(crate) use grid::Sweep;
pub use shard::Shard;
pub use shared::Shared;
pub use spec::Reproduction;
pub(crate) use spec::Spec;
pub use work::Sampled;
pub(crate) use work::{Samples, Work};
