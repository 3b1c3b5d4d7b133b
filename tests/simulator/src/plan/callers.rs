//! Parallel jobs that users submit to an open run, and when they close it.

use dormouse_model::Setup;
use dormouse_units::Span;
use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::faults::Millis;

/// A job that a user submits to an open run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalledJob {
    /// Simulated time since the previous submission, in milliseconds.
    pub after: Millis,
    /// Number of the job's processes.
    pub processes: u32,
    /// Run time of the job if it has processors of its own.
    pub runtime: Span,
    /// Whether the user submits the job again after it was answered: it still is one job.
    pub is_sent_twice: bool,
}

/// The users of an open run, who submit one job after the other and then close the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Callers {
    /// The jobs, in the order in which they are submitted.
    pub jobs: Vec<CalledJob>,
    /// Simulated time from the last answer until the run is closed, milliseconds.
    pub closes_after: Millis,
}

impl Callers {
    /// Draws the users of a run with this setup.
    pub(super) fn draw(seed: u64, setup: &Setup) -> Self {
        let mut draw = Draw::new(seed, "simulator: callers", 1);
        let processors = setup.space_of_jobs().processors.max(1);
        let job = |draw: &mut Draw| CalledJob {
            after: draw.between(0, 1_500),
            processes: 1 + draw.below(processors),
            runtime: Span::from_secs(draw.between(5, 60)),
            is_sent_twice: draw.one_in(3),
        };
        let jobs = (0..draw.below(4)).map(|_| job(&mut draw)).collect();
        Self { jobs, closes_after: draw.between(0, 2_000) }
    }

    /// Simulated time that all submissions take if the coordinator answers at once, in milliseconds.
    #[must_use]
    pub fn lasts(&self) -> Millis {
        self.jobs.iter().map(|job| job.after).sum::<Millis>() + self.closes_after
    }
}
