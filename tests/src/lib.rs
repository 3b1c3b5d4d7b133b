//! Whole-system tests: real processes, real kernel, real network.

mod binary;
mod live;
mod tree;

pub use binary::dormouse;
pub use live::live_turn;
pub use tree::tree;
