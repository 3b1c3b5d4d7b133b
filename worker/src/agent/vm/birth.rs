//! Result of the launch of an attempt.

use std::sync::Arc;

use super::job::JobBirth;
use crate::{
    agent::{launch::TaskBirth, machine::TaskProcess},
    process::ProcessEnd,
};

/// Result of a launch, of a task of one process or of a parallel job.
#[derive(Debug)]
pub(crate) enum AttemptBirth {
    Task(TaskBirth),
    Job(JobBirth),
}

impl AttemptBirth {
    pub(crate) const fn process(&self) -> &Arc<dyn TaskProcess> {
        match self {
            Self::Task(birth) => &birth.process,
            Self::Job(birth) => &birth.process,
        }
    }

    /// Returns how the attempt's process ended, if it ended at once.
    pub(crate) const fn ended_already(&self) -> Option<ProcessEnd> {
        match self {
            Self::Task(birth) => birth.ended,
            Self::Job(_) => None,
        }
    }
}
