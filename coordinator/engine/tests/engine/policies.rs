//! The schedulers of bags on whole runs of the engine in virtual time, even if machines fail.
#![expect(clippy::expect_used, reason = "a panic is how these fail")]
#![expect(clippy::disallowed_macros, reason = "tests print figures; the engine does not")]

mod acc;
mod checkpoints;
mod jobs;
mod lifetimes;
mod played;
mod priced;
mod properties;
mod rules;
mod tables;
mod trouble;
mod workflows;
