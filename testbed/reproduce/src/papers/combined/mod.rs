//! What none of the papers did: the schedulers of one under the lifetimes and checkpoints of another.

/// The data file.
pub(super) const DATA: &str = include_str!("paper.toml");
