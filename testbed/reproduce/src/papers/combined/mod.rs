//! Evaluations that no paper has: the schedulers of one paper with the lifetimes and checkpoints of another paper.

/// Data file of these evaluations: their experiments and claims.
pub(super) const DATA: &str = include_str!("paper.toml");
