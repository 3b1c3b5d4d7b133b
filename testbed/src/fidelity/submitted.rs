//! The parallel jobs of a run by their ids.

use dormouse_policies::batch::Submission;
use dormouse_units::TaskId;

/// Jobs in order of submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submitted<'a> {
    first: TaskId,
    jobs: &'a [Submission],
}

impl<'a> Submitted<'a> {
    /// Of a run that has nothing else.
    pub(crate) const fn alone(jobs: &'a [Submission]) -> Self {
        Self::after(TaskId::new(0), jobs)
    }

    /// Where the first of them has this id.
    pub(crate) const fn after(first: TaskId, jobs: &'a [Submission]) -> Self {
        Self { first, jobs }
    }

    /// The job of this id.
    pub(crate) fn get(self, id: TaskId) -> Option<&'a Submission> {
        self.jobs.get(id.get().checked_sub(self.first.get())? as usize)
    }
}
