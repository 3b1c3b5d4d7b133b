//! What a launch brought to life.

use std::sync::Arc;

use super::job;
use crate::{
    agent::launch::Birth,
    process::{Ended, Task},
};

/// What has come to life.
#[derive(Debug)]
pub(crate) enum Born {
    Task(Birth),
    Job(job::Birth),
}

impl Born {
    pub(crate) const fn process(&self) -> &Arc<Task> {
        match self {
            Self::Task(birth) => &birth.process,
            Self::Job(birth) => &birth.process,
        }
    }

    /// How it ended, if that was at once.
    pub(crate) const fn ended(&self) -> Option<Ended> {
        match self {
            Self::Task(birth) => birth.ended,
            Self::Job(_) => None,
        }
    }
}
