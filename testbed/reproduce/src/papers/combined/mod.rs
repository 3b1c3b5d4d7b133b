//! Evaluations that no paper has: the schedulers of one with the lifetimes and checkpoints of
//! another.

/// The data file.
pub(super) const DATA: &str = include_str!("paper.toml");
