//! Checking the content of CRIU's images before CRIU reads them.
//!
//! `images.proto` has the few fields of CRIU's messages that are checked; `messages.rs` is generated from it.
//!
//! A checkpoint may come from a stranger: whoever has a worker's token can make one. [`ImageRules`] says what the
//! images of a jailed task hold, and refuses all others.

mod entries;
mod files;
#[allow(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    missing_docs,
    unreachable_pub,
    reason = "generated code"
)]
mod messages;
mod names;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use rules::{ImageRules, user_of};
