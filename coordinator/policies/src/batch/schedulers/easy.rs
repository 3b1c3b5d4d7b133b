//! EASY, in the variant that the module `batch` describes.

use super::ListedBatchScheduler;

/// FCFS with a reservation for the head of the queue and backfilling.
pub(super) struct Easy;

impl ListedBatchScheduler for Easy {
    fn name(&self) -> &'static str {
        "easy"
    }

    fn about(&self) -> &'static str {
        "FCFS with a reservation for the head of the queue, and backfilling"
    }

    fn backfills(&self) -> bool {
        true
    }
}
