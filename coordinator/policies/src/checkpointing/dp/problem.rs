//! The problem: a job that is to be checkpointed.

use super::{AfterFailure, FailureLoss, FailureProbability, Rules, Survival};

/// A job on VMs that may be preempted. All times are whole steps of the grid of ages.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The job's work, in steps.
    pub job: usize,
    /// Time that a checkpoint takes, in steps.
    pub checkpoint: usize,
    /// Time that a job takes to resume from a checkpoint on another VM, in steps.
    pub restart: usize,
    /// Age of the VM on which the job begins, in steps.
    pub age: usize,
    /// Rules by which the recursion is read.
    pub rules: Rules,
    /// Distribution of the VMs' lifetimes.
    pub survival: &'a Survival,
}

/// Error: no schedule can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// No work is ever kept: no VM lives long enough for one step and its checkpoint.
    #[error(
        "no VM lives long enough for one step of {step} and its checkpoint, so no schedule \
             ends: try shorter steps"
    )]
    NeverEnds {
        /// Steps of a first chunk and its checkpoint.
        step: usize,
    },
    /// The table would not fit memory.
    #[error(
        "{job} steps of work on VMs of {ages} ages are more than {most} million cases: take coarser steps"
    )]
    TooFine {
        /// Number of steps of work in the job.
        job: usize,
        /// Number of VM ages on the grid.
        ages: usize,
        /// Greatest number of states that a table may have, in millions.
        most: usize,
    },
    /// The job is empty.
    #[error("a job of no work has no schedule: give it at least one step")]
    NoWork,
    /// The VM is older than any VM can get.
    #[error("no VM reaches the age of {age} steps: give an age below {last}")]
    TooOld {
        /// The VM age that was given, in steps.
        age: usize,
        /// The first age that no VM reaches, in steps.
        last: usize,
    },
}

/// Largest number of states that a table may have.
const STATES: usize = 64_000_000;

impl Problem<'_> {
    /// Number of ages that a grid needs for a job that begins at `age`: whatever happens, the job
    /// ends by then.
    #[must_use]
    pub fn ages(job: usize, checkpoint: usize, restart: usize, age: usize) -> usize {
        age + restart + job * (1 + checkpoint) + 1
    }

    /// Checks that the job has a schedule.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub fn check(&self) -> Result<(), ProblemError> {
        let (job, ages) = (self.job, self.survival.last() + 1);
        if job == 0 {
            return Err(ProblemError::NoWork);
        }
        if job >= usize::from(u16::MAX) || job.saturating_mul(ages) > STATES {
            return Err(ProblemError::TooFine { job, ages, most: STATES / 1_000_000 });
        }
        if self.survival.alive(self.age) <= 0.0 {
            return Err(ProblemError::TooOld { age: self.age, last: self.survival.last() });
        }
        Ok(())
    }

    /// Time in steps that a chunk of `work` steps takes when `left` steps remain, including the checkpoint
    /// that follows the chunk, if one is taken.
    #[must_use]
    pub const fn chunk_time(&self, work: usize, left: usize) -> usize {
        if work == left && !self.rules.last_checkpoint { work } else { work + self.checkpoint }
    }

    /// Probability that a VM reaches this age, by which probabilities of failure are divided to make them conditional; 1 if the
    /// rules use unconditional probabilities.
    pub(super) fn condition_at(&self, age: usize) -> f64 {
        match self.rules.probability {
            FailureProbability::Conditional => self.survival.alive(age),
            FailureProbability::Unconditional => 1.0,
        }
    }

    /// Probability that a chunk of `takes` steps on a VM of this age is lost, and the expected time
    /// that the chunk occupies, lost or not, in steps.
    pub(super) fn chunk_outcome(&self, age: usize, takes: usize) -> (f64, f64) {
        let (survival, to) = (self.survival, age + takes);
        let (alive, then) = (survival.alive(age), survival.alive(to));
        let given = self.condition_at(age);
        // No VM reaches this age.
        let lost = if given > 0.0 { (alive - then) / given } else { 1.0 };
        let takes = steps(takes);
        let undone = match self.rules.loss {
            FailureLoss::Half => lost * takes / 2.0,
            FailureLoss::Exact if given > 0.0 => {
                (survival.lived(to) - survival.lived(age) - takes * then) / given
            }
            FailureLoss::Exact => 0.0,
        };
        (lost, (1.0 - lost) * takes + undone)
    }

    /// The least VM age, in steps, on which the job can ever run.
    pub(super) const fn youngest_age(&self) -> usize {
        match self.rules.after_failure {
            AfterFailure::Fresh => 0,
            AfterFailure::SameAge => self.age,
        }
    }

    /// The age of the VM on which the job continues after a failure.
    pub(super) const fn next_age(&self) -> usize {
        match self.rules.after_failure {
            AfterFailure::Fresh => 0,
            AfterFailure::SameAge => self.age + self.restart,
        }
    }
}

/// Converts a number of steps to a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "steps are few")]
pub(super) const fn steps(n: usize) -> f64 {
    n as f64
}
