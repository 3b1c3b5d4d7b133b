//! The server of a run's live page: HTTP on a thread of its own, at a lower priority than the run.

mod access;
mod connection;
mod peer;
mod routes;
mod serve;
mod stream;
pub mod untrusted;

pub use access::PageTokens;
pub use serve::{PageConfig, ServeError, ServedRun, serve};
