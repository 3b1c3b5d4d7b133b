//! What became of parallel jobs.

use dormouse_model::{Promotion, Submission};
use dormouse_units::{Cpus, Span, TaskId, Tier, Time};
use serde::{Deserialize, Serialize};

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The job's id; ids follow the order of submission.
    pub id: TaskId,
    /// The job's number in the trace.
    pub number: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// Number of processes of the job.
    pub processes: u32,
    /// How long it runs on processors of its own.
    pub runtime: Span,
    /// How long its user said.
    pub estimate: Span,
    /// When it first had processors, in either tier.
    pub started: Time,
    /// When it came to the foreground, if ever.
    pub foreground: Option<Time>,
    /// The emulated time at which it had done its work.
    pub ended: Time,
    /// The processors that it had at its end.
    pub on: Cpus,
    /// Times it swapped tiers where it was.
    pub swaps: u32,
    /// Times it was killed and started again.
    pub kills: u32,
    /// Times it was moved.
    pub migrations: u32,
    /// Whether it wanted more than its estimate, at which it was ended.
    pub is_cut: bool,
}

impl Record {
    /// The record of a job that starts at `now`.
    #[must_use]
    pub fn begun(id: TaskId, submission: &Submission, now: Time, tier: Tier, on: Cpus) -> Self {
        Self {
            id,
            number: submission.number,
            submitted: submission.submitted,
            processes: submission.processes,
            runtime: submission.runtime,
            estimate: submission.estimate,
            started: now,
            foreground: (tier == Tier::Foreground).then_some(now),
            ended: now,
            on,
            swaps: 0,
            kills: 0,
            migrations: 0,
            is_cut: submission.is_cut,
        }
    }

    /// It comes to the foreground.
    pub fn promoted(&mut self, now: Time, by: &Promotion) {
        self.foreground = Some(now);
        match by {
            Promotion::Swap => self.swaps += 1,
            Promotion::Kill { on } => {
                self.kills += 1;
                self.on = on.clone();
            }
            Promotion::Migrate { on } => {
                self.migrations += 1;
                self.on = on.clone();
            }
        }
    }

    /// From submission to end.
    #[must_use]
    pub const fn response(&self) -> Span {
        self.ended.since(self.submitted)
    }

    /// max(1, response / max(run time, 10 s)) (section 3.3).
    #[must_use]
    pub fn bounded_slowdown(&self) -> f64 {
        let runtime = self.runtime.max(Span::from_secs(10));
        (self.response().as_secs_f64() / runtime.as_secs_f64()).max(1.0)
    }
}

/// What a simulation came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Jobs that ended.
    pub jobs: u64,
    /// Promotions in place.
    pub swaps: u64,
    /// Promotions by kill and restart.
    pub kills: u64,
    /// Promotions by migration.
    pub migrations: u64,
    /// Jobs that ended without ever having been in the foreground.
    pub background_only: u64,
    /// When the last job ended.
    pub end: Time,
    /// Jobs in the system now.
    pub in_system: usize,
    /// Most of them at once.
    pub most_in_system: usize,
}
