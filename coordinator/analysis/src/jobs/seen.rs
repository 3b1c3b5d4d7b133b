//! The view that the scheduler of parallel jobs has of a run.

use std::borrow::Cow;

use dormouse_engine::tenants_view;
use dormouse_model::{Step, TenantWork, Tenants};
use dormouse_units::TenantId;

/// Translates the steps of a run into the steps that the scheduler of its parallel jobs saw.
#[derive(Clone, Debug)]
pub struct SeenByJobs {
    tenants: Tenants,
    jobs: TenantId,
}

impl SeenByJobs {
    /// Makes a translator that turns the steps of a run with these tenants into the steps that its scheduler of parallel jobs saw.
    #[must_use]
    pub fn new(tenants: Tenants) -> Self {
        let jobs = tenants.find_tenant(TenantWork::Jobs).unwrap_or_default();
        Self { tenants, jobs }
    }

    /// The step as the scheduler of parallel jobs saw it: the step itself if no other tenant shares the run.
    #[must_use]
    pub fn see<'a>(&self, step: &'a Step) -> Cow<'a, Step> {
        match self.tenants.are_several() {
            false => Cow::Borrowed(step),
            true => Cow::Owned(tenants_view(step, &self.tenants, self.jobs)),
        }
    }
}
