//! How far a live run is from its twin in virtual time, as a part of its verdict.

use serde::{Deserialize, Serialize};

use super::Allowed;
use super::figures::percent;

/// How many times what its tasks and jobs may miss their promises by a faithful run may be from its twin.
/// The twin has no births, waits for CRIU or late messages; quiet runs are within a twentieth task by
/// task, and within a two-hundredth on average.
const TIMES: f64 = 2.0;

/// How far a live run is from its twin. Differences are parts of the twin's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinDistance {
    /// Whether the two decided differently at some point: what came after is of different things.
    pub diverged: bool,
    /// Difference of the makespan; `None`: not all work was finished in both.
    pub makespan: Option<f64>,
    /// Difference of the cost; `None` of parallel jobs.
    pub cost: Option<f64>,
    /// Mean difference of the times of tasks and jobs that nothing disturbed; `None`: there are none.
    pub undisturbed_mean: Option<f64>,
    /// The difference of those that is the furthest from zero.
    pub undisturbed_worst: Option<f64>,
}

impl TwinDistance {
    /// What of it is too far for a faithful run, a sentence each.
    pub(super) fn notes(&self, allowed: &Allowed) -> Vec<String> {
        let Self { diverged, makespan, cost, undisturbed_mean, undisturbed_worst } = *self;
        let (worst, mean) = (allowed.worst_error * TIMES, allowed.mean_error * TIMES);
        let whole = |difference: Option<f64>| difference.filter(|_| !diverged);
        let all = [
            ("the makespan", whole(makespan), worst),
            ("the cost", whole(cost), worst),
            ("the mean time of undisturbed tasks", undisturbed_mean, mean),
            ("the time of an undisturbed task", undisturbed_worst, worst),
        ];
        let far = all.into_iter().filter_map(|(what, difference, most)| {
            Some((what, difference.filter(|is| is.abs() > most)?, most))
        });
        let sentence = |(what, is, most): (&str, f64, f64)| {
            format!(
                "{what} is {} {} than in the twin in virtual time; at most {} is allowed",
                percent(is.abs()),
                if is > 0.0 { "more" } else { "less" },
                percent(most)
            )
        };
        far.map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::Speedup;

    use super::*;

    #[test]
    fn a_run_that_is_far_from_its_twin_is_said_unless_it_decided_otherwise() {
        let allowed = Allowed { worst_error: 0.05, mean_error: 0.005, speedup: Speedup::times(30) };
        let near = TwinDistance {
            diverged: false,
            makespan: Some(0.09),
            cost: None,
            undisturbed_mean: Some(-0.009),
            undisturbed_worst: Some(0.08),
        };
        assert_eq!(near.notes(&allowed), Vec::<String>::new());
        let far = TwinDistance { makespan: Some(-0.4), ..near };
        let said = far.notes(&allowed);
        assert!(said.len() == 1 && said[0].contains("the makespan is 40.0 % less"), "{said:?}");
        assert_eq!(TwinDistance { diverged: true, ..far }.notes(&allowed), Vec::<String>::new());
        let tasks = TwinDistance { undisturbed_worst: Some(-0.3), diverged: true, ..near };
        assert_eq!(tasks.notes(&allowed).len(), 1);
    }
}
