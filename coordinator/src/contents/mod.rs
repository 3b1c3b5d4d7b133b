//! The contents of files that tasks begin with, save and leave, by their digests, in a run's folder.
//!
//! ```text
//! contents/<2 hex>/<62 hex>                              a content, by its BLAKE3
//! contents/inputs/<hex>                                  one that stays until the run is over
//! contents/checkpoints/<task>/<number>.<attempt>/<hex>   one that a stored checkpoint refers to
//! tasks/<task>/                                          what a task left: see `outputs.rs`
//! ```
//!
//! A content is one file with as many names as it is needed for: one that has only its digest's, and that nobody has
//! asked for in a while, goes. So nothing need be counted, and a coordinator that was killed has lost no count.
//! Nothing is synced, as with checkpoints: after a power cut the digests tell.

mod digests;
mod inputs;
mod inputs_reader;
mod outputs;
mod pool;

pub(crate) use digests::{digest_of, read_digests};
pub(crate) use inputs_reader::InputsReader;
pub(crate) use outputs::LayOut;
pub use pool::ContentPool;
pub(crate) use pool::{ContentRefusal, IncomingContent, Which};
