//! The engine from outside: whole runs in virtual time.
#![cfg(test)]

// The name of each test begins with that of its program: `cargo test engine::policies`.
#[path = ""]
mod engine {
    mod displaced;
    mod figures;
    mod job_checkpoints;
    mod job_credits;
    mod job_memory;
    mod policies;
    mod reference;
    mod run;
    mod shared;
    mod two_tier;
}
