//! The papers' evaluations again, ours beside theirs, with intervals, claims and causes: a folder for
//! each paper, and what both use beside them.

pub mod burst_hads;
mod compared;
pub mod measy;

pub use compared::DEVIATION;
