//! The batch scheduler FCFS.

use super::ListedBatchScheduler;

/// First come, first served.
pub(super) struct Fcfs;

impl ListedBatchScheduler for Fcfs {
    fn name(&self) -> &'static str {
        "fcfs"
    }

    fn about(&self) -> &'static str {
        "first come, first served"
    }
}
