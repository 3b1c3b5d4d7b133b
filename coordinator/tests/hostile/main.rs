//! What a coordinator makes of workers, disks and strangers that do not do as they should.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod durable;
mod lies;
mod session;
mod trust;
