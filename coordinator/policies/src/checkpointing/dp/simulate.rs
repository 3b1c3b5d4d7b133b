//! Simulation of jobs that are run by their schedule, one after the other.

use dormouse_units::RandomStream;

use super::problem::steps;
use super::{AfterFailure, Plan, Problem};

/// Time in steps that each of `jobs` simulated jobs takes, on VMs that are preempted at random as the problem's rules
/// assume.
pub fn simulate(
    problem: &Problem<'_>,
    plan: &Plan,
    jobs: u64,
    seed: u64,
) -> impl Iterator<Item = f64> {
    (0..jobs).map(move |n| {
        let mut chance = RandomStream::new(seed, "checkpointed job", n);
        match problem.rules.after_failure {
            AfterFailure::Fresh => on_fresh_vms(problem, plan, &mut chance),
            AfterFailure::SameAge => as_the_authors(problem, plan, &mut chance),
        }
    })
}

/// Simulates a job on VMs whose lifetimes are drawn from the distribution; after a failure the next VM is new.
/// Returns the job's time in steps.
fn on_fresh_vms(problem: &Problem<'_>, plan: &Plan, chance: &mut RandomStream) -> f64 {
    let (mut left, mut age, mut took) = (problem.job, problem.age, 0.0);
    let mut life = problem.survival.draw(age, chance);
    while left > 0 {
        let work = plan.next(left, age).clamp(1, left);
        let takes = problem.chunk_time(work, left);
        if steps(age + takes) <= life {
            took += steps(takes);
            (left, age) = (left - work, age + takes);
        } else {
            took += life - steps(age) + steps(problem.restart);
            (age, life) = (0, problem.survival.draw(0, chance));
        }
    }
    took
}

/// Simulates a job as the authors' code does: each chunk is lost with its unconditional probability
/// and then costs half of itself. After a failure the next chunk is tried until it succeeds, and
/// with the probability of its loss the whole job counts as done.
fn as_the_authors(problem: &Problem<'_>, plan: &Plan, chance: &mut RandomStream) -> f64 {
    let (mut left, mut age, mut took) = (problem.job, problem.age, 0.0);
    while left > 0 {
        let work = plan.next(left, age).clamp(1, left);
        let takes = problem.chunk_time(work, left);
        let (lost, _) = problem.chunk_outcome(age, takes);
        if chance.draw_unit() >= lost {
            took += steps(takes);
            (left, age) = (left - work, age + takes);
            continue;
        }
        took += steps(takes) / 2.0 + steps(problem.restart);
        age = problem.next_age();
        let work = plan.next_after_failure(left);
        if work == 0 {
            return took + steps(left);
        }
        let takes = problem.chunk_time(work, left);
        let (lost, _) = problem.chunk_outcome(age, takes);
        while chance.draw_unit() < lost {
            took += steps(takes) / 2.0 + steps(problem.restart);
        }
        if chance.draw_unit() < lost {
            return took;
        }
        took += steps(takes);
        (left, age) = (left - work, age + takes);
    }
    took
}
