//! Expected makespan of any schedule.

use super::problem::steps;
use super::{Problem, ProblemError};

/// Exact expected makespan of a job, in steps, if `next(left, age)` steps of work are done between
/// checkpoints. Probabilities of failure are conditional on the VM's age, and each failure leads to a new
/// VM, even if the chunks were chosen under other rules.
///
/// # Errors
///
/// The job never ends, or there is no schedule.
pub fn expected(
    problem: &Problem<'_>,
    next: &dyn Fn(usize, usize) -> usize,
) -> Result<f64, ProblemError> {
    problem.check()?;
    let mut anew = vec![0.0; problem.job + 1];
    for left in 1..=problem.job {
        let way = walk_schedule(problem, &anew, (left, 0), next);
        // x = way + P(lost in the first chunk) · (restart + x)
        anew[left] = (way.takes + way.lost_first * steps(problem.restart)) / (1.0 - way.lost_first);
        if !anew[left].is_finite() {
            return Err(ProblemError::NeverEnds { step: problem.chunk_time(1, problem.job) });
        }
    }
    let way = walk_schedule(problem, &anew, (problem.job, problem.age), next);
    Ok(way.takes + way.lost_first * (steps(problem.restart) + anew[problem.job]))
}

/// Expected course of a job on one VM. `takes` has the expected steps until the job ends, including what follows a failure in any
/// chunk but the first. `lost_first` has the probability that the first chunk fails.
struct ExpectedPath {
    takes: f64,
    lost_first: f64,
}

fn walk_schedule(
    problem: &Problem<'_>,
    anew: &[f64],
    (mut left, mut age): (usize, usize),
    next: &dyn Fn(usize, usize) -> usize,
) -> ExpectedPath {
    let survival = problem.survival;
    let (born, mut alive) = (survival.alive(age), survival.alive(age));
    let (mut way, mut is_first) = (ExpectedPath { takes: 0.0, lost_first: 0.0 }, true);
    while left > 0 && alive > 0.0 {
        let work = next(left, age).clamp(1, left);
        let to = age + problem.chunk_time(work, left);
        let lost = (alive - survival.alive(to)) / born;
        way.takes += (survival.lived(to) - survival.lived(age)) / born;
        if is_first {
            way.lost_first = lost;
        } else {
            way.takes += lost * (steps(problem.restart) + anew[left]);
        }
        (alive, left, age, is_first) = (survival.alive(to), left - work, to, false);
    }
    way
}
