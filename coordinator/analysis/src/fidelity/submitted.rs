//! The parallel jobs of a run by their ids: those of its workload and those submitted from outside.

use dormouse_model::{Event, Step, Submission};
use dormouse_units::TaskId;

/// All jobs submitted in these steps, in the order of their ids.
#[must_use]
pub fn jobs_in(steps: &[Step]) -> Vec<Submission> {
    let job = |step: &Step| match &step.event {
        Event::Submitted { job, .. } => Some(Submission::clone(job)),
        _ => None,
    };
    steps.iter().filter_map(job).collect()
}

/// Number of jobs that a complete run of this workload has: all jobs of the workload, and all jobs
/// submitted from outside. A run that was ended early may have submitted fewer.
#[must_use]
pub fn expected(steps: &[Step], workload: &[Submission]) -> u64 {
    let outside = |step: &&Step| matches!(step.event, Event::Submitted { key: Some(_), .. });
    (workload.len() + steps.iter().filter(outside).count()) as u64
}

/// Parallel jobs in order of submission, which have consecutive ids.
#[derive(Clone, Copy, Debug)]
pub struct SubmittedJobs<'a> {
    first: TaskId,
    jobs: &'a [Submission],
}

impl<'a> SubmittedJobs<'a> {
    /// Jobs of a run that has no other work: the first has id 0.
    #[must_use]
    pub const fn alone(jobs: &'a [Submission]) -> Self {
        Self::after(TaskId::new(0), jobs)
    }

    /// The jobs in `jobs`, whose ids begin with `first`.
    #[must_use]
    pub const fn after(first: TaskId, jobs: &'a [Submission]) -> Self {
        Self { first, jobs }
    }

    /// The job of this id.
    #[must_use]
    pub fn get(self, id: TaskId) -> Option<&'a Submission> {
        self.jobs.get(id.get().checked_sub(self.first.get())? as usize)
    }
}
