//! KEASY (MEASY paper, Algorithm 1).

use super::{ListedBatchScheduler, OnPromotion};

/// EASY on two tiers; a background job that is to run in the foreground elsewhere is killed and restarts.
pub(super) struct Keasy;

impl ListedBatchScheduler for Keasy {
    fn name(&self) -> &'static str {
        "keasy"
    }

    fn about(&self) -> &'static str {
        "EASY on two tiers: a background job that moves to the foreground is killed (Algorithm 1)"
    }

    fn backfills(&self) -> bool {
        true
    }

    fn promotion(&self) -> Option<OnPromotion> {
        Some(OnPromotion::Kill)
    }
}
