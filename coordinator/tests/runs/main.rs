//! Live runs, with workers that only say what they are told to say.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "../common/mod.rs"]
mod common;
mod contents;
mod jobs;
mod joining;
mod observing;
mod order;
mod restores;
mod thinking;
mod versions;
