//! Tests of the simulator: what it plays, what it finds, and what it prints.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

// The name of each test begins with that of its program: `cargo test simulated::seeds`.
#[path = ""]
mod simulated {
    mod command_line;
    mod faults;
    mod planted;
    mod seeds;
    mod tables;
    mod turmoil_runs;
}
