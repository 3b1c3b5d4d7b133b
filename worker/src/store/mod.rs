//! Checkpoints on disk.
//!
//! ```text
//! <root>/<run>/<task>/<sequence>/
//!     manifest.json      what the checkpoint is; there only when it is complete
//!     images/            CRIU's files
//!     files/             the task's directory as it was
//!     dump.log           CRIU's log
//! ```
//!
//! A checkpoint is complete once its manifest has been renamed into place. Nothing is synced:
//! after a power cut the checksums tell, and the checkpoint before is used. Each task keeps its three newest.
//! All go with the worker's life, and what a killed one leaves with the next one's start.
//!
//! The functions of [`Store`] and [`Checkpoint`] that touch the directory are few, so that
//! an object store can take its place behind the same ones.

mod checkpoint;
mod checksum;
mod directory;
mod draft;
mod error;
mod full;
mod manifest;
mod transfer;

pub use checkpoint::Checkpoint;
pub(crate) use checksum::follow_pages;
pub use directory::{Damaged, Latest, Store};
pub use draft::Draft;
pub use error::{Error, Result};
pub use full::HeldFull;
pub use manifest::{FileEntry, Manifest, OpenFile, Progress};
