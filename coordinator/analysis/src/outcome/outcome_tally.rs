//! Number of units of work by outcome.

use serde_json::{Value, json};

use super::WorkOutcome;
use crate::RunMode;

/// Number of tasks or jobs in all and by outcome. In a run that is over, tasks or jobs without
/// another outcome were given up; in a run that continues they are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeTally {
    /// Number of tasks or jobs in all.
    pub total: u64,
    /// Number of tasks or jobs that are done in virtual time, where answers are not checked.
    pub completed: u64,
    /// Number of tasks or jobs that are done with an answer that the coordinator has checked.
    pub verified: u64,
    /// Number of tasks or jobs that only their workers report as done.
    pub reported: u64,
    /// Number of tasks or jobs whose programs ended and failed.
    pub program_failed: u64,
    /// Number of tasks or jobs that were not done when the run was over.
    pub given_up: u64,
}

impl OutcomeTally {
    /// Counts these outcomes; `None` is an open task or job.
    pub fn from_outcomes(outcomes: impl IntoIterator<Item = Option<WorkOutcome>>) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            tally.total += 1;
            match outcome {
                Some(WorkOutcome::Completed) => tally.completed += 1,
                Some(WorkOutcome::Verified) => tally.verified += 1,
                Some(WorkOutcome::Reported) => tally.reported += 1,
                Some(WorkOutcome::Failed(_)) => tally.program_failed += 1,
                Some(WorkOutcome::GivenUp) => tally.given_up += 1,
                None => {}
            }
        }
        tally
    }

    /// Number of tasks or jobs that are done, verified or not.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.completed + self.verified + self.reported
    }

    /// Number of tasks or jobs that failed: their programs did, or they were given up. This is the
    /// meaning of `failed` wherever work is counted.
    #[must_use]
    pub const fn failed(&self) -> u64 {
        self.program_failed + self.given_up
    }

    /// The number of failed tasks that were given up, in brackets, such as ` (1 given up)`; empty
    /// if no task was given up.
    #[must_use]
    pub fn given_up_in_brackets(&self) -> String {
        match self.given_up {
            0 => String::new(),
            all if all == self.failed() => " (given up)".to_owned(),
            some => format!(" ({some} given up)"),
        }
    }

    /// Whether all work is done.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.done() == self.total
    }

    /// The object `tasks` of `summary.json`, for a run that is over: everything that is not
    /// completed has failed.
    #[must_use]
    pub fn summary(&self) -> Value {
        json!({
            "total": self.total,
            "completed": self.done(),
            "verified": self.verified,
            "reported": self.reported,
            "failed": self.total - self.done(),
            "given_up": self.given_up,
        })
    }

    /// The tally as one line, such as `1 of 3 verified, 1 reported, 1 failed`.
    #[must_use]
    pub fn in_words(&self, mode: RunMode) -> String {
        let (number, word) = match mode {
            RunMode::Virtual => (self.completed, WorkOutcome::Completed.word()),
            RunMode::Live => (self.verified, WorkOutcome::Verified.word()),
        };
        let others = [(self.reported, "reported"), (self.failed(), "failed")];
        let others = others.into_iter().filter(|(number, _)| *number > 0);
        let others: String = others.map(|(number, what)| format!(", {number} {what}")).collect();
        format!("{number} of {} {word}{others}{}", self.total, self.given_up_in_brackets())
    }

    /// Words for a tile on a page, beside the number of tasks or jobs that are done, such as `2 verified, 1 reported`.
    #[must_use]
    pub fn on_a_tile(&self) -> String {
        let parts = [
            (self.completed, "completed"),
            (self.verified, "verified"),
            (self.reported, "reported"),
            (self.failed(), "failed"),
        ];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<_> = parts
            .map(|(number, what)| match number == self.total {
                true => what.to_owned(),
                false => format!("{number} {what}"),
            })
            .collect();
        parts.join(", ") + &self.given_up_in_brackets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ProgramFailure;

    /// A failed program among others is neither done nor verified, wherever it is counted.
    #[test]
    fn a_line_a_tile_and_the_summary_count_alike() {
        use WorkOutcome::{Failed, GivenUp, Reported, Verified};
        let status = Failed(ProgramFailure::Status(1));
        let tally = OutcomeTally::from_outcomes([Some(Verified), Some(Reported), Some(status)]);
        assert_eq!(tally.in_words(RunMode::Live), "1 of 3 verified, 1 reported, 1 failed");
        assert_eq!(tally.on_a_tile(), "1 verified, 1 reported, 1 failed");
        assert!(!tally.is_complete());
        let summary = tally.summary();
        let keys = ["total", "completed", "verified", "reported", "failed", "given_up"];
        let values = keys.map(|key| summary[key].as_u64());
        assert_eq!(values, [3, 2, 1, 1, 1, 0].map(Some), "{summary}");

        let tally = OutcomeTally::from_outcomes([Some(Reported), Some(Reported)]);
        assert_eq!(tally.in_words(RunMode::Live), "0 of 2 verified, 2 reported");
        assert_eq!((tally.on_a_tile().as_str(), tally.is_complete()), ("reported", true));

        let tally = OutcomeTally::from_outcomes([Some(Verified), Some(GivenUp), Some(status)]);
        assert_eq!(tally.in_words(RunMode::Live), "1 of 3 verified, 2 failed (1 given up)");
        assert_eq!(tally.on_a_tile(), "1 verified, 2 failed (1 given up)");
        let [failed, given_up] = ["failed", "given_up"].map(|key| tally.summary()[key].as_u64());
        assert_eq!((failed, given_up), (Some(2), Some(1)), "the word has one meaning");

        let tally = OutcomeTally::from_outcomes([Some(WorkOutcome::Completed), Some(GivenUp)]);
        assert_eq!(tally.in_words(RunMode::Virtual), "1 of 2 completed, 1 failed (given up)");
        let none = OutcomeTally::from_outcomes([Some(GivenUp), Some(GivenUp)]);
        assert_eq!(none.on_a_tile(), "failed (given up)");
        assert_eq!((none.failed(), none.summary()["failed"].as_u64()), (2, Some(2)));

        let done = [Some(WorkOutcome::Completed); 2];
        let tally = OutcomeTally::from_outcomes(done);
        assert_eq!(tally.in_words(RunMode::Virtual), "2 of 2 completed");
        assert_eq!(tally.on_a_tile(), "completed");
    }
}
