//! Distance of a live run from its twin in virtual time, as a part of its verdict.

use serde::{Deserialize, Serialize};

use super::AllowedErrors;
use super::figures::percent;

/// A faithful run may differ from its twin by this many times the errors that its tasks and jobs
/// may have. The twin has no births, waits for CRIU or late messages; quiet runs are within 5 % for
/// each task and within 0.5 % on average.
const TIMES: f64 = 2.0;

/// Distance of a live run from its twin. Differences are parts of the twin's value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinDistance {
    /// Whether the two ever decided differently: from then on they can't be compared.
    pub diverged: bool,
    /// Difference of the makespans; `None` if work was left in one of them.
    pub makespan: Option<f64>,
    /// Difference of the costs; `None` for parallel jobs.
    pub cost: Option<f64>,
    /// Mean difference of the times of undisturbed tasks and jobs; `None` if there are none.
    pub undisturbed_mean: Option<f64>,
    /// The difference of an undisturbed task or job that is furthest from zero.
    pub undisturbed_worst: Option<f64>,
}

impl TwinDistance {
    /// One sentence for each difference that is too large for a faithful run.
    pub(super) fn notes(&self, allowed: &AllowedErrors) -> Vec<String> {
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
        let allowed = AllowedErrors {
            worst_error: 0.05,
            mean_error: 0.005,
            speedup: Speedup::times_real(30),
        };
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
