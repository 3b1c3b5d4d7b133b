//! Runs shared by a bag of tasks and parallel jobs, in virtual time.
#![expect(clippy::expect_used, reason = "a panic is how these fail")]
#![expect(clippy::cast_possible_truncation, reason = "draws below small numbers")]

mod background;
mod customers;
mod tenants;
mod world;
