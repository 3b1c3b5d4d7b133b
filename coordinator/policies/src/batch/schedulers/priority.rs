//! EASY with a queue in the order of priorities.

use super::ListedBatchScheduler;

/// EASY whose queue is in the order of the jobs' priorities: the head, which has the reservation, is the job with the
/// greatest, and others backfill beside it.
pub(super) struct Priority;

impl ListedBatchScheduler for Priority {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn about(&self) -> &'static str {
        "EASY with the queue in the order of the jobs' priorities, greatest first"
    }

    fn backfills(&self) -> bool {
        true
    }

    fn heeds_priorities(&self) -> bool {
        true
    }
}
