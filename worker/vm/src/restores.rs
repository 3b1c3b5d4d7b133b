//! Limit on how many checkpoints a worker goes back when checkpoints are damaged.

/// Number of older checkpoints that a worker tries if the checkpoint that it was to restore is damaged. For each task, a run
/// remembers as many numbers of older checkpoints, in addition to those of the checkpoints that the coordinator stores.
pub const OLDER_CHECKPOINTS: u32 = 2;
