//! Checkpoints of live runs in a bucket of S3, or of a server that speaks its protocol: the store of objects that
//! a coordinator is handed where an experiment has `[live.checkpoint-store]`.
//!
//! Credentials come from the environment and are never shown, logged or kept.

mod bucket;
mod failure;
mod object;
mod settings;
#[cfg(test)]
mod tests;

pub use bucket::Bucket;
