//! Configuration of a scheduler of parallel jobs.

use dormouse_model::PromotionMethod;
use dormouse_units::{Ppm, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Algorithm;

/// The machine on which the scheduler runs jobs, and how the scheduler uses it.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Algorithm that schedules the jobs.
    pub algorithm: Algorithm,
    /// Number of the machine's processors.
    pub processors: u32,
    /// CPU usage of a foreground process below which a background VM may use its processor too (section 2.1: 96 %).
    pub usable_below: Ppm,
    /// True if a background VM may be used on a processor whose foreground is idle: any process runs at full speed there until a
    /// foreground process comes (Figures 2 and 3).
    pub usable_idle: bool,
    /// When waiting jobs are put into the background.
    pub fill: BackgroundFill,
    /// When the scheduler expects a job to end that comes to the foreground with part of its work done.
    pub expected_end: ExpectedEnd,
    /// Time that a migration is expected to take.
    pub migration_cost: Span,
}

/// When waiting jobs are put into the background. The paper's text has both variants: its Algorithm 1 does so in every
/// pass, its section 2.2.1 "when job departs the background tier".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Fill")]
pub enum BackgroundFill {
    /// Waiting jobs are put into the background in every scheduling pass.
    #[default]
    EveryPass,
    /// Waiting jobs are put into the background in a scheduling pass after a job has left the background, or while the
    /// background is empty.
    AfterDeparture,
}

/// Expected end of a job that comes to the foreground with the work that it has done in the background, by a swap or a migration.
/// The paper plans with whole estimates (its Figure 1) and does not say how it changes them for work that is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedEnd {
    /// The job is expected to run for its whole estimate from now on, as if it began now.
    #[default]
    WholeEstimate,
    /// The job is expected to run for its whole estimate and the time of a migration from now on.
    AfterMove,
    /// The job is expected to end once its estimate has passed since it began in the background, as if it had been as fast
    /// there; now, if that time is past.
    SinceStart,
}

impl Config {
    /// `algorithm` on `processors` processors with the paper's threshold of 96 % and migrations of 20 s.
    #[must_use]
    pub const fn new(algorithm: Algorithm, processors: u32) -> Self {
        Self {
            algorithm,
            processors,
            usable_below: Ppm::new(960_000),
            usable_idle: true,
            fill: BackgroundFill::EveryPass,
            expected_end: ExpectedEnd::WholeEstimate,
            migration_cost: Span::from_secs(20),
        }
    }

    /// Expected end, by the rule `expected_end`, of a job with this estimate that began in the background
    /// at `since` and is promoted to the foreground at `now` by the method `by`.
    pub(super) fn end_expected_of(
        &self,
        by: &PromotionMethod,
        (since, now): (Time, Time),
        estimate: Span,
    ) -> Time {
        let whole = now + estimate;
        match (self.expected_end, by) {
            // One that is killed has no work done.
            (_, PromotionMethod::Kill { .. })
            | (ExpectedEnd::WholeEstimate, _)
            | (ExpectedEnd::AfterMove, PromotionMethod::Swap) => whole,
            (ExpectedEnd::AfterMove, PromotionMethod::Migrate { .. }) => {
                whole + self.migration_cost
            }
            (ExpectedEnd::SinceStart, _) => now.max(since + estimate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_done_counts_where_that_is_said_and_it_is_kept() {
        let at = Time::from_secs;
        let on = dormouse_units::Cpus::from([3]);
        let (moved, killed) =
            (PromotionMethod::Migrate { on: on.clone() }, PromotionMethod::Kill { on });
        for (expected_end, by, now, end) in [
            (ExpectedEnd::WholeEstimate, &moved, 100, 160),
            (ExpectedEnd::AfterMove, &moved, 100, 180),
            (ExpectedEnd::AfterMove, &PromotionMethod::Swap, 100, 160),
            (ExpectedEnd::SinceStart, &moved, 100, 150),
            (ExpectedEnd::SinceStart, &PromotionMethod::Swap, 100, 150),
            // It has outlived its estimate.
            (ExpectedEnd::SinceStart, &moved, 200, 200),
            (ExpectedEnd::SinceStart, &killed, 100, 160),
        ] {
            let config = Config { expected_end, ..Config::new(Algorithm::Measy, 8) };
            let ours = config.end_expected_of(by, (at(90), at(now)), Span::from_secs(60));
            assert_eq!(ours, at(end), "{expected_end:?}, {by:?} at {now}");
        }
    }
}
