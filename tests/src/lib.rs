//! Whole-system tests: real processes, real kernel, real network.

mod binary;
mod tree;

pub use binary::dormouse;
pub use tree::tree;
