//! Examples in the help of every command: at least two of each, real and run by the tests.

mod example;
mod files;
mod hosts;
mod many_runs;
mod runs;

pub use example::{Example, all};

pub(super) use example::with_examples;
