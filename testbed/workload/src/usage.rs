//! CPU usage, which no log has.

use dormouse_batch::{Submission, Usage};
use dormouse_cloud::Stream;
use dormouse_units::Ppm;

/// How CPU usage is assigned to the processes of a job (section 3.1 of the MEASY paper):
/// the process of a one-process job uses all of its processor; each process of a larger
/// job a share drawn uniformly from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRule {
    /// Least usage of a process of a larger job.
    pub low: Ppm,
    /// Most.
    pub high: Ppm,
    /// For the draws: one stream a job.
    pub seed: u64,
}

impl UsageRule {
    /// The paper's 40 % to 100 %.
    #[must_use]
    pub const fn paper(seed: u64) -> Self {
        Self { low: Ppm::new(400_000), high: Ppm::ONE, seed }
    }

    /// Every process uses its whole processor (section 3.5.2).
    #[must_use]
    pub const fn full() -> Self {
        Self { low: Ppm::ONE, high: Ppm::ONE, seed: 0 }
    }

    /// `submission` with its usage.
    #[must_use]
    pub fn assign(&self, submission: Submission) -> Submission {
        let usage = if submission.processes <= 1 || self.low >= Ppm::ONE {
            Usage::FULL
        } else {
            let mut stream = Stream::new(self.seed, "cpu-usage", submission.number);
            let width = self.high.get().saturating_sub(self.low.get()) as usize + 1;
            let draw = |_| {
                let above = u32::try_from(stream.below(width)).unwrap_or_default();
                Ppm::new(self.low.get() + above)
            };
            Usage::each((0..submission.processes).map(draw).collect())
        };
        Submission { usage, ..submission }
    }
}
