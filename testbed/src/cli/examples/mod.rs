//! Examples in the help of every command: at least two of each, real and run by the tests.

mod example;
mod files;
mod help;
mod hosts;
mod many_runs;
mod runs;

pub use example::Example;
pub use help::all;

pub(super) use help::with_examples;
