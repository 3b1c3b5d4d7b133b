//! A run as the scheduler of its parallel jobs saw it.

use std::borrow::Cow;

use dormouse_engine::{Work, seen_by};
use dormouse_model::Step;

/// Tells the steps of a run as the scheduler of its parallel jobs saw them.
#[derive(Clone, Debug)]
pub struct SeenByJobs {
    of: Vec<Work>,
    tenant: usize,
}

impl SeenByJobs {
    /// View of a run with these tenants, as the scheduler of its jobs sees it.
    #[must_use]
    pub fn new(of: Vec<Work>) -> Self {
        let tenant = of.iter().position(|work| *work == Work::Jobs).unwrap_or_default();
        Self { of, tenant }
    }

    /// The step as they saw it: itself, where nobody shares the run.
    #[must_use]
    pub fn see<'a>(&self, step: &'a Step) -> Cow<'a, Step> {
        match self.of.len() {
            0 | 1 => Cow::Borrowed(step),
            _ => Cow::Owned(seen_by(step, &self.of, self.tenant)),
        }
    }
}
