//! Contents of files that tasks begin with, by their digests.
//!
//! ```text
//! <root>/contents/<digest>    one content, its digest in hexadecimal
//! ```
//!
//! What is not held by a task may go whenever there is no room for another. All go with the worker's life.

mod cache;
mod incoming;

pub use cache::{ContentCache, HeldContents};
pub use incoming::{ContentDownload, ContentError};
