//! Checkpoints on disk.
//!
//! ```text
//! <root>/<run>/<task>/<sequence>/
//!     manifest.json      what the checkpoint is; there only when it is complete
//!     manifest.seal      a keyed hash of that file
//!     images/            CRIU's files
//!     files/             the contents of the task's directory as it was, each under its digest
//!     dump.log           CRIU's log
//! ```
//!
//! CRIU sees the files of a checkpoint only once the manifest fits its seal, by the key of this host, and the files fit
//! the digests in the manifest. Pages are verified while CRIU reads them, before the task runs.
//!
//! A content that has not changed since an earlier checkpoint of the task is the same file as there, by a hard link.
//!
//! A checkpoint is complete once its manifest has been renamed into place. Nothing is synced: after a power cut the
//! checksums reveal damage, and the previous checkpoint is used. Each task keeps its three newest. All are removed when
//! the worker ends; those that a killed worker leaves are removed at the next worker's start.
//!
//! The functions of [`LocalCheckpoints`] and [`StoredCheckpoint`] that touch the directory are few, so that
//! an object store can take its place behind the same ones.

mod checkpoint;
mod checksum;
mod directory;
mod draft;
mod error;
mod expected;
mod full;
mod manifest;
mod seal;
mod shelf;
mod sound;
mod transfer;
mod unaided;

pub use checkpoint::StoredCheckpoint;
pub(crate) use checksum::follow_pages;
pub use directory::{DamagedCheckpoint, LatestCheckpoint, LocalCheckpoints};
pub use dormouse_identity::ImageKey;
pub use draft::CheckpointDraft;
pub use error::{Result, StoreError};
pub use expected::ExpectedCheckpoint;
pub use full::HeldFull;
pub use manifest::{CheckpointFile, CheckpointManifest, OpenFile, SavedProgress};
pub use shelf::{
    CheckpointShelf, LocalCopy, NewestCheckpoint, find_copy, newest_accepted, next_number,
    prune_task,
};
pub use transfer::CheckpointArrival;
pub use unaided::DIRECTORY;
