//! The coordinator's service, with workers that a test controls.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

// The name of each test begins with that of its program: `cargo test service::hostile`.
#[path = ""]
mod service {
    mod hostile;
    mod runs;
}
