//! The parallel jobs of a run by their ids: those of its workload, and those that came from outside.

use dormouse_model::{Event, Step, Submission};
use dormouse_units::TaskId;

/// The jobs that were submitted in these steps, in the order of their ids.
#[must_use]
pub fn jobs_in(steps: &[Step]) -> Vec<Submission> {
    let job = |step: &Step| match &step.event {
        Event::Submitted { job, .. } => Some(Submission::clone(job)),
        _ => None,
    };
    steps.iter().filter_map(job).collect()
}

/// The number of jobs that there should have been in a run of this workload: a run that was ended may not have
/// come to all of them.
#[must_use]
pub fn expected(steps: &[Step], workload: &[Submission]) -> u64 {
    let outside = |step: &&Step| matches!(step.event, Event::Submitted { key: Some(_), .. });
    (workload.len() + steps.iter().filter(outside).count()) as u64
}

/// Jobs in order of submission.
#[derive(Clone, Copy, Debug)]
pub struct Submitted<'a> {
    first: TaskId,
    jobs: &'a [Submission],
}

impl<'a> Submitted<'a> {
    /// Jobs of a run that has no other work: the first has id 0.
    #[must_use]
    pub const fn alone(jobs: &'a [Submission]) -> Self {
        Self::after(TaskId::new(0), jobs)
    }

    /// The jobs of which the first has this id.
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
