//! Contents of the files that tasks begin with, save and leave, stored by digest in a run's folder.
//!
//! ```text
//! contents/<2 hex>/<62 hex>                              a content, by its BLAKE3
//! contents/inputs/<hex>                                  a content that stays until the run is over
//! contents/checkpoints/<task>/<number>.<attempt>/<hex>   a content that a stored checkpoint refers to
//! tasks/<task>/                                          the outputs of a task: see `outputs.rs`
//! ```
//!
//! A content is one file with several names: one by its digest, and one for each use. A content that has only the name
//! by its digest, and that no call has asked for in a while, is removed. So no references need to be counted, and a
//! coordinator that was killed has lost no count. Nothing is synced, as with checkpoints: after a power cut the digests
//! show what is damaged.

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
