//! The bound on the checkpoints that a worker goes back by, where those that it is given are damaged.

/// Number of older checkpoints that a worker tries if the one that it was told to restore is damaged. A run keeps the
/// numbers of so many checkpoints beyond those that are stored.
pub const OLDER_CHECKPOINTS: u32 = 2;
