//! The recursion as it stands: every chunk in every state. n steps of work on VMs of T ages are
//! n · T states with up to n chunks each, so that the time grows with n² · T.

use super::problem::steps;
use super::{AfterFailure, Loss, Plan, Problem, ProblemError};

/// The least expected makespans of jobs of 0 to `job` steps, whatever the rules.
pub(super) fn solve(problem: &Problem<'_>) -> Result<Plan, ProblemError> {
    let Problem { job, .. } = *problem;
    let (first, last) = (problem.youngest(), problem.survival.last());
    let mut table = Table::new(job, last, problem.checkpoint);
    let (mut plan, mut values) = (Plan::new(problem), vec![0.0; last + 1]);
    plan.set(0, 0.0, &values);
    for left in 1..=job {
        let (anew, then) = after_failure(problem, &table, left);
        let again = steps(problem.restart) + anew;
        if !again.is_finite() {
            return Err(ProblemError::NeverEnds { step: problem.takes(1, job) });
        }
        let ages = values.iter_mut().enumerate().take(oldest(problem, left) + 1).skip(first);
        for (age, value) in ages {
            let (least, chosen) = least(problem, &table, (left, age), again);
            table.put(left, age, least);
            *value = least;
            plan.choose(left, age, chosen);
        }
        plan.set(left, anew, &values);
        plan.choose_after_failure(left, then);
    }
    Ok(plan)
}

/// The oldest VM that a job with so much left is looked at on. Where the reading knows of a new VM it is
/// any, as jobs may begin on it, else the oldest that it can have come to.
fn oldest(problem: &Problem<'_>, left: usize) -> usize {
    let most = (problem.job - left) * (1 + problem.checkpoint);
    match problem.rules.after_failure {
        AfterFailure::Fresh => problem.survival.last(),
        AfterFailure::SameAge => (problem.next_age() + most).min(problem.survival.last()),
    }
}

/// The least that is expected with so much left on a VM of this age, and the chunk that has it.
fn least(
    problem: &Problem<'_>,
    table: &Table,
    (left, age): (usize, usize),
    again: f64,
) -> (f64, usize) {
    let (survival, checkpoint) = (problem.survival, problem.checkpoint);
    let mut found = (f64::INFINITY, left);
    // Chunks after which the VM is younger than the last and there is work left.
    let from = age + checkpoint + 1;
    let to = (age + checkpoint + left).min(survival.last()).max(from);
    let given = problem.given(age);
    let alive = survival.alive(age);
    if given > 0.0 && from < to {
        let (thens, lived) = survival.between(from, to);
        let rests = &table.diagonals[left + age + checkpoint][from..to];
        let (is_half, before) = (problem.rules.loss == Loss::Half, survival.lived(age));
        let mut takes = steps(checkpoint);
        for (n, ((then, lived), rest)) in thens.iter().zip(lived).zip(rests).enumerate() {
            takes += 1.0;
            let lost = (alive - then) / given;
            let undone =
                if is_half { lost * takes / 2.0 } else { (lived - before - takes * then) / given };
            let value = (1.0 - lost) * (takes + rest) + undone + lost * again;
            if value < found.0 {
                found = (value, n + 1);
            }
        }
    }
    // Beyond the last age all grows evenly with the chunk: the shortest that leads there or the longest
    // is the least.
    let beyond = survival.last().saturating_sub(age + checkpoint).max(1);
    for work in [beyond, left].into_iter().filter(|work| *work <= left) {
        let takes = problem.takes(work, left);
        let (lost, cost) = problem.chunk(age, takes);
        let value = cost + (1.0 - lost) * table.at(left - work, age + takes) + lost * again;
        if value < found.0 {
            found = (value, work);
        }
    }
    found
}

/// What a job with so much left is expected to take from the VM on that comes after a failure, and what
/// it does there first; zero: no chunk is known to take so little.
fn after_failure(problem: &Problem<'_>, table: &Table, left: usize) -> (f64, usize) {
    let age = problem.next_age();
    let restart = steps(problem.restart);
    let of = |work| {
        let takes = problem.takes(work, left);
        let (lost, cost) = problem.chunk(age, takes);
        let kept = 1.0 - lost;
        let rest = table.at(left - work, age + takes);
        match problem.rules.after_failure {
            // x = cost + kept · rest + lost · (restart + x)
            AfterFailure::Fresh => (cost + kept * rest + lost * restart) / kept,
            AfterFailure::SameAge => {
                let undone = steps(takes) / 2.0 + restart;
                kept * (steps(takes) + rest) + lost * undone / kept
            }
        }
    };
    let better = |a: (f64, usize), b: (f64, usize)| if b.0 < a.0 { b } else { a };
    let least = (1..=left).map(|work| (of(work), work)).fold((f64::INFINITY, 0), better);
    match problem.rules.after_failure {
        AfterFailure::SameAge if least.0 < steps(left) => (steps(left), 0),
        _ => least,
    }
}

/// What is expected by work that is left and age. All that one state looks at lies side by side: work
/// and age add up to the same. Beyond the last age VMs are as at the last.
struct Table {
    diagonals: Vec<Vec<f64>>,
    beyond: Vec<f64>,
    last: usize,
}

impl Table {
    fn new(job: usize, last: usize, checkpoint: usize) -> Self {
        let diagonal = |sum: usize| vec![0.0; sum.min(last) + 1];
        let diagonals = (0..=job + last + checkpoint).map(diagonal).collect();
        Self { diagonals, beyond: vec![0.0; job + 1], last }
    }

    fn at(&self, left: usize, age: usize) -> f64 {
        if age >= self.last { self.beyond[left] } else { self.diagonals[left + age][age] }
    }

    fn put(&mut self, left: usize, age: usize, value: f64) {
        if age >= self.last {
            self.beyond[left] = value;
        } else {
            self.diagonals[left + age][age] = value;
        }
    }
}
