//! Jobs run by their schedule, one after the other.

use dormouse_units::Stream;

use super::problem::steps;
use super::{AfterFailure, Plan, Problem};

/// How long each of so many jobs took, in steps, on VMs that are taken away by chance, by what the
/// problem's rules assume of them.
pub fn simulate(
    problem: &Problem<'_>,
    plan: &Plan,
    jobs: u64,
    seed: u64,
) -> impl Iterator<Item = f64> {
    (0..jobs).map(move |n| {
        let mut chance = Stream::new(seed, "checkpointed job", n);
        match problem.rules.after_failure {
            AfterFailure::Fresh => on_fresh_vms(problem, plan, &mut chance),
            AfterFailure::SameAge => as_the_authors(problem, plan, &mut chance),
        }
    })
}

/// Lifetimes are drawn from their distribution; the next VM is new.
fn on_fresh_vms(problem: &Problem<'_>, plan: &Plan, chance: &mut Stream) -> f64 {
    let (mut left, mut age, mut took) = (problem.job, problem.age, 0.0);
    let mut life = problem.survival.draw(age, chance);
    while left > 0 {
        let work = plan.next(left, age).clamp(1, left);
        let takes = problem.takes(work, left);
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

/// Each chunk is lost by an unconditional chance and costs half of itself; after a failure the next
/// chunk fails as often as it would until it is done, and with the same chance the job counts as done.
fn as_the_authors(problem: &Problem<'_>, plan: &Plan, chance: &mut Stream) -> f64 {
    let (mut left, mut age, mut took) = (problem.job, problem.age, 0.0);
    while left > 0 {
        let work = plan.next(left, age).clamp(1, left);
        let takes = problem.takes(work, left);
        let (lost, _) = problem.chunk(age, takes);
        if chance.unit() >= lost {
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
        let takes = problem.takes(work, left);
        let (lost, _) = problem.chunk(age, takes);
        while chance.unit() < lost {
            took += steps(takes) / 2.0 + steps(problem.restart);
        }
        if chance.unit() < lost {
            return took;
        }
        took += steps(takes);
        (left, age) = (left - work, age + takes);
    }
    took
}
