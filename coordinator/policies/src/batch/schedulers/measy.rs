//! MEASY (section 2.3.2 of its paper).

use super::{ListedBatchScheduler, OnPromotion};

/// EASY on two tiers; a background job that is to run in the foreground elsewhere migrates.
pub(super) struct Measy;

impl ListedBatchScheduler for Measy {
    fn name(&self) -> &'static str {
        "measy"
    }

    fn about(&self) -> &'static str {
        "EASY on two tiers: a background job that moves to the foreground migrates (section 2.3.2)"
    }

    fn backfills(&self) -> bool {
        true
    }

    fn promotion(&self) -> Option<OnPromotion> {
        Some(OnPromotion::Migrate)
    }
}
