//! Rules that assign CPU usage to jobs, since no log has it.

use dormouse_model::Submission;
use dormouse_units::{Ppm, RandomStream, Usage};

/// How CPU usage is assigned to the processes of a job (section 3.1 of the MEASY paper):
/// the process of a one-process job uses all of its processor; each process of a larger
/// job a share drawn uniformly from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRule {
    /// Least usage of a process of a larger job.
    pub low: Ppm,
    /// Greatest usage of a process of a larger job.
    pub high: Ppm,
    /// Seed of the draws: each job has a stream of its own.
    pub seed: u64,
}

impl UsageRule {
    /// The MEASY paper's rule: usage is drawn from 40 % to 100 %.
    #[must_use]
    pub const fn paper_rule(seed: u64) -> Self {
        Self { low: Ppm::new(400_000), high: Ppm::ONE, seed }
    }

    /// Every process uses its whole processor (section 3.5.2 of the MEASY paper).
    #[must_use]
    pub const fn full_usage() -> Self {
        Self { low: Ppm::ONE, high: Ppm::ONE, seed: 0 }
    }

    /// The submission with CPU usage assigned to its processes.
    #[must_use]
    pub fn assign_usage(&self, submission: Submission) -> Submission {
        let usage = if self.is_whole(&submission) {
            Usage::FULL
        } else {
            let mut stream = self.usage_stream(&submission);
            Usage::each_process((0..submission.processes).map(|_| self.draw(&mut stream)).collect())
        };
        Submission { usage, ..submission }
    }

    /// Like [`UsageRule::assign_usage`], but with one draw for all processes of a job, another possible
    /// reading of the paper.
    #[must_use]
    pub fn assign_one(&self, submission: Submission) -> Submission {
        let usage = if self.is_whole(&submission) {
            Usage::FULL
        } else {
            Usage::Uniform(self.draw(&mut self.usage_stream(&submission)))
        };
        Submission { usage, ..submission }
    }

    fn is_whole(&self, submission: &Submission) -> bool {
        submission.processes <= 1 || self.low >= Ppm::ONE
    }

    fn usage_stream(&self, submission: &Submission) -> RandomStream {
        RandomStream::new(self.seed, "cpu-usage", submission.number)
    }

    fn draw(&self, stream: &mut RandomStream) -> Ppm {
        let width = self.high.get().saturating_sub(self.low.get()) as usize + 1;
        let above = u32::try_from(stream.draw_below(width)).unwrap_or_default();
        Ppm::new(self.low.get() + above)
    }
}
