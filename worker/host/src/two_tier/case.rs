//! Cases of the two-tier measurement: the sizes of the jobs.

use std::time::Duration;

use dormouse_units::RandomStream;

/// Number of processes that each measured job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessCase {
    /// Both jobs have one process, on one processor.
    Single,
    /// Each job has two processes, on two processors.
    Several,
}

impl ProcessCase {
    /// Both cases; the simpler one comes first.
    pub const ALL: [Self; 2] = [Self::Single, Self::Several];

    /// Name of the case in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Several => "several",
        }
    }

    /// Number of processes of each job.
    #[must_use]
    pub const fn processes(self) -> u32 {
        match self {
            Self::Single => 1,
            Self::Several => 2,
        }
    }

    /// CPU usage of the background job's processes, from 0 to 1. For one process it is 1 (section 3.1 of the paper).
    /// For several it is the mean of the paper's range; any foreground leaves less than that, so the job never runs at
    /// its full speed, and the part of the idle cycles that it uses can be measured.
    #[must_use]
    pub const fn background_usage(self) -> f64 {
        match self {
            Self::Single => 1.0,
            Self::Several => 0.7,
        }
    }
}

/// Parameters of a foreground and a background job, apart from the foreground's usage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobPair {
    /// Number of processes of each job, and of the processors that both jobs share.
    pub case: ProcessCase,
    /// Seed from which the lengths of both jobs' phases are drawn.
    pub seed: u64,
    /// The length of a phase of the foreground job when it runs alone.
    pub foreground_phase: Duration,
    /// The length of a phase of the background job when it runs alone.
    pub background_phase: Duration,
}

/// Shortest and longest phase in seconds. How much a background job gains from idle cycles depends
/// on how its phases fit the foreground's, and real programs have all lengths.
const PHASES: (f64, f64) = (0.002, 0.05);

impl JobPair {
    /// Draws the phase lengths of a foreground and a background job under this seed: log-uniform in their range.
    #[must_use]
    pub fn draw(case: ProcessCase, seed: u64) -> Self {
        let mut stream = RandomStream::named_stream(seed, "two-tier", case.name());
        let mut phase = || {
            let (shortest, longest) = PHASES;
            Duration::from_secs_f64(shortest * (longest / shortest).powf(stream.draw_unit()))
        };
        Self { case, seed, foreground_phase: phase(), background_phase: phase() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_differ_by_seed_and_case_and_are_the_same_again() {
        let pair = |case, seed| JobPair::draw(case, seed);
        assert_eq!(pair(ProcessCase::Single, 3), pair(ProcessCase::Single, 3));
        assert_ne!(
            pair(ProcessCase::Single, 3).foreground_phase,
            pair(ProcessCase::Single, 4).foreground_phase
        );
        assert_ne!(
            pair(ProcessCase::Single, 3).foreground_phase,
            pair(ProcessCase::Several, 3).foreground_phase
        );
        let (shortest, longest) = PHASES;
        for seed in 0..1000 {
            let JobPair { foreground_phase, background_phase, .. } =
                pair(ProcessCase::Several, seed);
            for phase in [foreground_phase, background_phase] {
                assert!((shortest..longest).contains(&phase.as_secs_f64()), "{phase:?}");
            }
        }
    }
}
