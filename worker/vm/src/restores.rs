//! The bound on the checkpoints that a worker goes back by, where those that it is given are damaged.

/// The number of older checkpoints that a worker tries by itself where the one that it was told to begin with is
/// damaged. The run keeps the log's numbers of so many beyond those whose images are stored.
pub const OLDER_CHECKPOINTS: u32 = 2;
