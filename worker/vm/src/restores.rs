//! Limit on how many checkpoints a worker goes back when checkpoints are damaged.

/// Number of older checkpoints that a worker tries if the checkpoint that it was to restore is damaged. A run remembers
/// the numbers of this many checkpoints beyond the stored ones.
pub const OLDER_CHECKPOINTS: u32 = 2;
