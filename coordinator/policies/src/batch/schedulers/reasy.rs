//! REASY (MEASY paper, Algorithm 3).

use super::{ListedBatchScheduler, OnPromotion};

/// EASY on two tiers; a background job never leaves its processors.
pub(super) struct Reasy;

impl ListedBatchScheduler for Reasy {
    fn name(&self) -> &'static str {
        "reasy"
    }

    fn about(&self) -> &'static str {
        "EASY on two tiers: a background job never leaves its processors (Algorithm 3)"
    }

    fn backfills(&self) -> bool {
        true
    }

    fn promotion(&self) -> Option<OnPromotion> {
        Some(OnPromotion::Wait)
    }
}
