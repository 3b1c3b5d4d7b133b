//! Contents of files that tasks begin with, by their digests.
//!
//! ```text
//! <root>/contents/<digest>    one content, its digest in hexadecimal
//! ```
//!
//! A content that no task holds may be removed whenever another content needs room. All contents are removed when the
//! worker ends.

mod cache;
mod incoming;

pub use cache::{ContentCache, HeldContents};
pub use incoming::{ContentDownload, ContentError};
