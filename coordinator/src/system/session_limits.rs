//! Bounds on what may be under way between a coordinator and a worker at once.

use serde::{Deserialize, Serialize};

/// Bounds on what may be under way between a coordinator and one worker at once, and on what the checkpoint store does.
/// Each is at least 1. A simulation draws small ones, so that runs which have little to do meet them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionLimits {
    /// Greatest number of commands in one message, so that no message comes near the limit of its size.
    pub batch: usize,
    /// Number of messages of a worker that may wait for the journal before the worker must wait itself.
    pub window: usize,
    /// Number of messages to a worker that may wait for the worker to read them.
    pub outbound: usize,
    /// Number of checkpoints that a host may have under way.
    pub transfers: usize,
    /// Number of threads that work for the checkpoint store.
    pub store_threads: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { batch: 1_000, window: 64, outbound: 64, transfers: 32, store_threads: 16 }
    }
}
