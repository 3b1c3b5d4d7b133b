//! A run as the scheduler of its parallel jobs saw it.

use std::borrow::Cow;

use dormouse_engine::tenants_view;
use dormouse_model::{Step, Tenants, Work};
use dormouse_units::TenantId;

/// Tells the steps of a run as the scheduler of its parallel jobs saw them.
#[derive(Clone, Debug)]
pub struct SeenByJobs {
    tenants: Tenants,
    jobs: TenantId,
}

impl SeenByJobs {
    /// View of a run with these tenants, as the scheduler of its jobs sees it.
    #[must_use]
    pub fn new(tenants: Tenants) -> Self {
        let jobs = tenants.with(Work::Jobs).unwrap_or_default();
        Self { tenants, jobs }
    }

    /// The step as they saw it: itself, where nobody shares the run.
    #[must_use]
    pub fn see<'a>(&self, step: &'a Step) -> Cow<'a, Step> {
        match self.tenants.are_several() {
            false => Cow::Borrowed(step),
            true => Cow::Owned(tenants_view(step, &self.tenants, self.jobs)),
        }
    }
}
