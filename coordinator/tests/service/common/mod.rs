//! A tiny experiment, a tiny scheduler, and a worker that a test controls.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "test support; not every test uses all of it"
)]

pub mod checkpoint;
mod experiment;
mod worker;

#[allow(unused_imports, reason = "not every test uses all of it")]
pub use experiment::*;
#[allow(unused_imports, reason = "not every test uses all of it")]
pub use worker::*;
