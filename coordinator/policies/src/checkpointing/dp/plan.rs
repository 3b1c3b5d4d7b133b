//! Plans of the dynamic program: the least expected makespans of a job, and the chunks of work that attain
//! them.

use super::problem::steps;
use super::{
    AfterFailure, FailureLoss, FailureProbability, Problem, ProblemError, envelope, plain,
};

/// A piece of work between two checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkChunk {
    /// Age of the VM at the chunk's beginning, in steps.
    pub age: usize,
    /// Work in the chunk, in steps.
    pub work: usize,
}

/// Chunks to do for every job of up to `job` steps on a VM of every age.
#[derive(Clone, Debug)]
pub struct Plan {
    job: usize,
    first: usize,
    age: usize,
    any_age: bool,
    checkpoint: usize,
    ages: usize,
    /// Work of the next chunk, in steps, by remaining work and age.
    chosen: Vec<u16>,
    /// Steps of work in the first chunk after a failure, indexed by the remaining work; used where this
    /// chunk does not depend on the VM's age.
    first_after: Vec<u16>,
    /// Expected makespans after a failure of jobs of 0, 1, 2, … steps, without the restart, in
    /// steps.
    anew: Vec<f64>,
    /// Expected makespan of the whole job, in steps, on a VM of each age.
    values: Vec<f64>,
}

impl Plan {
    /// The schedule of a job that is expected to end the soonest.
    ///
    /// For n steps of work on VMs of T ages the computation takes time that grows with n · T under
    /// the rules `CONDITIONAL`, whatever their `last_checkpoint`, else with n² · T.
    ///
    /// # Errors
    ///
    /// There is no schedule, or it would not fit memory.
    pub fn solve(problem: &Problem<'_>) -> Result<Self, ProblemError> {
        problem.check()?;
        let rules = problem.rules;
        match (rules.probability, rules.loss, rules.after_failure) {
            (FailureProbability::Conditional, FailureLoss::Exact, AfterFailure::Fresh) => {
                envelope::solve(problem)
            }
            _ => plain::solve(problem),
        }
    }

    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let ages = problem.survival.last() + 1;
        Self {
            job: problem.job,
            first: problem.youngest_age(),
            age: problem.age,
            any_age: problem.rules.after_failure == AfterFailure::Fresh,
            checkpoint: problem.checkpoint,
            ages,
            chosen: vec![0; (problem.job + 1) * ages],
            first_after: vec![0; problem.job + 1],
            anew: vec![0.0; problem.job + 1],
            values: Vec::new(),
        }
    }

    pub(super) fn choose_chunk(&mut self, left: usize, age: usize, work: usize) {
        self.chosen[left * self.ages + age] = u16::try_from(work).unwrap_or(u16::MAX);
    }

    pub(super) fn choose_after_failure(&mut self, left: usize, work: usize) {
        self.first_after[left] = u16::try_from(work).unwrap_or(u16::MAX);
    }

    /// Steps of work in the first chunk after a failure under [`AfterFailure::SameAge`], with `left` steps
    /// of work to do; 0: no chunk is known.
    pub(super) fn next_after_failure(&self, left: usize) -> usize {
        usize::from(self.first_after[left])
    }

    /// Stores expected makespans of `left` steps of work: `anew` after a failure, and, only if `left` is
    /// the whole job, `values` by VM age.
    pub(super) fn set_makespans(&mut self, left: usize, anew: f64, values: &[f64]) {
        self.anew[left] = anew;
        if left == self.job {
            values.clone_into(&mut self.values);
        }
    }

    /// Number of steps of the whole job.
    #[must_use]
    pub const fn job(&self) -> usize {
        self.job
    }

    /// Expected makespan of the job, in steps.
    #[must_use]
    pub fn makespan(&self) -> f64 {
        self.values[self.age.min(self.ages - 1)]
    }

    /// Expected makespan, in steps, if the job began on a VM of this age. `None`: the age is off the grid,
    /// or, under [`AfterFailure::SameAge`], isn't the age on which the problem's job begins.
    #[must_use]
    pub fn makespan_at(&self, age: usize) -> Option<f64> {
        self.values.get(age).copied().filter(|_| self.any_age || age == self.age)
    }

    /// Expected makespan, in steps, of a job with `left` steps of work that has just lost its VM, counted
    /// from the beginning of the next VM.
    #[must_use]
    pub fn makespan_after_failure(&self, left: usize) -> f64 {
        self.anew[left.min(self.job)]
    }

    /// Steps of work to do before the next checkpoint, if `left` steps of work remain and the VM has this
    /// age; 0 if no work remains.
    #[must_use]
    pub fn next(&self, left: usize, age: usize) -> usize {
        let (left, age) = (left.min(self.job), age.clamp(self.first, self.ages - 1));
        usize::from(self.chosen[left * self.ages + age])
    }

    /// The chunks of work of a job with `left` steps, on a VM of this age that is not preempted.
    #[must_use]
    pub fn schedule(&self, left: usize, age: usize) -> Vec<WorkChunk> {
        let (mut left, mut age, mut chunks) = (left.min(self.job), age, Vec::new());
        while left > 0 {
            let work = self.next(left, age).clamp(1, left);
            chunks.push(WorkChunk { age, work });
            left -= work;
            age += work + self.checkpoint;
        }
        chunks
    }

    /// Work of the whole job's chunks, in steps, read from the table as the paper's authors did for their
    /// printed schedule. For each age the authors take the longest chunk of any remaining work, not the
    /// chunk of the job, and the age grows by the work alone, without checkpoints. Work that is left when
    /// the next chunk would be longer gets no chunk.
    #[must_use]
    pub fn as_read_out(&self) -> Vec<usize> {
        let (mut done, mut all) = (0, Vec::new());
        loop {
            let age = self.age + done;
            // At the beginning their table has the whole job only.
            let rows = if done == 0 { self.job..=self.job } else { 1..=self.job };
            let longest = rows.map(|left| self.next(left, age)).max().unwrap_or_default();
            if longest == 0 || done + longest > self.job {
                return all;
            }
            all.push(longest);
            done += longest;
        }
    }

    /// Expected overhead of the job, as a fraction of its work.
    #[must_use]
    pub fn overhead(&self) -> f64 {
        self.makespan() / steps(self.job) - 1.0
    }
}
