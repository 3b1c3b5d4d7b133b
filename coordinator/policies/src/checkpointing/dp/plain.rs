//! The recursion as it stands, with every chunk in every state. n steps of work on VMs of T ages
//! are n · T states with up to n chunks each, so that the time grows with n² · T.

use super::problem::steps;
use super::{AfterFailure, FailureLoss, Plan, Problem, ProblemError};

/// Computes the least expected makespans, in steps, of jobs of 0 to `job` steps, and the chunks that attain
/// them, under any rules.
pub(super) fn solve(problem: &Problem<'_>) -> Result<Plan, ProblemError> {
    let Problem { job, .. } = *problem;
    let (first, last) = (problem.youngest_age(), problem.survival.last());
    let mut table = MakespanTable::new(job, last, problem.checkpoint);
    let (mut plan, mut values) = (Plan::new(problem), vec![0.0; last + 1]);
    plan.set_makespans(0, 0.0, &values);
    for left in 1..=job {
        let (anew, then) = after_failure(problem, &table, left);
        let again = steps(problem.restart) + anew;
        if !again.is_finite() {
            return Err(ProblemError::NeverEnds { step: problem.chunk_time(1, job) });
        }
        let ages = values.iter_mut().enumerate().take(oldest_age(problem, left) + 1).skip(first);
        for (age, value) in ages {
            let (least, chosen) =
                least_makespan(problem, &table, (left, age), (again, plan.next(left - 1, age)));
            table.put_makespan(left, age, least);
            *value = least;
            plan.choose_chunk(left, age, chosen);
        }
        plan.set_makespans(left, anew, &values);
        plan.choose_after_failure(left, then);
    }
    Ok(plan)
}

/// The oldest VM age, in steps, for which a job with `left` steps of work needs a table entry.
/// Where every failure leads to a new VM this is the last age, as jobs may begin at any age; else
/// it is the greatest age that the job can have reached.
fn oldest_age(problem: &Problem<'_>, left: usize) -> usize {
    let most = (problem.job - left) * (1 + problem.checkpoint);
    match problem.rules.after_failure {
        AfterFailure::Fresh => problem.survival.last(),
        AfterFailure::SameAge => (problem.next_age() + most).min(problem.survival.last()),
    }
}

/// The least expected makespan, in steps, of `left` steps of work on a VM of this age, and the work
/// of the first chunk that attains it. `again` is the expected makespan after a failure. `guess`, a
/// first chunk that is probably good, is tried early so that others can be skipped.
fn least_makespan(
    problem: &Problem<'_>,
    table: &MakespanTable,
    (left, age): (usize, usize),
    (again, guess): (f64, usize),
) -> (f64, usize) {
    let (survival, checkpoint) = (problem.survival, problem.checkpoint);
    let mut found = (f64::INFINITY, left);
    // Beyond the last age all grows linearly with the chunk: the shortest chunk that leads there or
    // the longest is the least.
    let beyond = survival.last().saturating_sub(age + checkpoint).max(1);
    for work in [left, beyond, guess.max(1)].into_iter().filter(|work| *work <= left) {
        let takes = problem.chunk_time(work, left);
        let (lost, cost) = problem.chunk_outcome(age, takes);
        let value =
            cost + (1.0 - lost) * table.makespan_at(left - work, age + takes) + lost * again;
        if value < found.0 {
            found = (value, work);
        }
    }
    // Chunks after which the VM is younger than the last and there is work left.
    let (mut from, given) = (age + checkpoint + 1, problem.condition_at(age));
    let to = (age + checkpoint + left).min(survival.last());
    let (rests, floors) = table.diagonal_of(left + age + checkpoint);
    let (alive, before) = (survival.alive(age), survival.lived(age));
    let is_half = problem.rules.loss == FailureLoss::Half;
    while given > 0.0 && from < to {
        let end = ((from / BLOCK + 1) * BLOCK).min(to);
        let (thens, lived) = survival.survival_between(from, end);
        // The loss of a chunk that takes `takes`, after which the part `then` still lives and the
        // mean lifetime so far is `lived`.
        let lost = |then: f64| (alive - then) / given;
        let undone = |takes: f64, then: f64, lived: f64| match is_half {
            true => lost(then) * takes / 2.0,
            false => (lived - before - takes * then) / given,
        };
        // The longer a chunk, the more is lost: no chunk of the block is better than this bound.
        let kept_least = 1.0 - lost(thens[thens.len() - 1]);
        let shortest = steps(from - age);
        let bound = kept_least * (floors[from / BLOCK] - steps(age))
            + undone(shortest, thens[0], lived[0])
            + lost(thens[0]) * again;
        if bound < found.0 {
            // First all values, then the least: so several are computed at once.
            let mut values = [f64::INFINITY; BLOCK];
            let all = thens.iter().zip(lived).zip(&rests[from..end]).zip(&OFFSETS);
            for (value, (((then, lived), rest), offset)) in values.iter_mut().zip(all) {
                let (takes, lost) = (shortest + offset, lost(*then));
                *value =
                    (1.0 - lost) * (takes + rest) + undone(takes, *then, *lived) + lost * again;
            }
            for (n, value) in values.iter().enumerate() {
                if *value < found.0 {
                    found = (*value, from + n - age - checkpoint);
                }
            }
        }
        from = end;
    }
    found
}

/// Expected makespan, in steps, of `left` steps of work on the VM that follows a failure, and the work of the first chunk there.
/// The chunk is 0 where the makespan is only its lower bound, which no chunk attains.
fn after_failure(problem: &Problem<'_>, table: &MakespanTable, left: usize) -> (f64, usize) {
    let age = problem.next_age();
    let restart = steps(problem.restart);
    let of = |work| {
        let takes = problem.chunk_time(work, left);
        let (lost, cost) = problem.chunk_outcome(age, takes);
        let kept = 1.0 - lost;
        let rest = table.makespan_at(left - work, age + takes);
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

/// Number of chunks that are looked at together.
const BLOCK: usize = 32;
/// The offsets 0, 1, 2, … steps of the chunks in a block.
const OFFSETS: [f64; BLOCK] = {
    let (mut all, mut n) = ([0.0; BLOCK], 1);
    while n < BLOCK {
        all[n] = all[n - 1] + 1.0;
        n += 1;
    }
    all
};

/// Expected makespans, in steps, by remaining work and VM age. Entries that one state reads lie
/// side by side, on a diagonal of equal sums of work and age. Ages beyond the last are read as the
/// last.
struct MakespanTable {
    diagonals: Vec<Vec<f64>>,
    /// Least sum of age and expected makespan, in steps, in each block of `BLOCK` ages, for each diagonal.
    floors: Vec<Vec<f64>>,
    beyond: Vec<f64>,
    last: usize,
}

impl MakespanTable {
    fn new(job: usize, last: usize, checkpoint: usize) -> Self {
        let sums = 0..=job + last + checkpoint;
        let diagonals = sums.clone().map(|sum| vec![0.0; sum.min(last) + 1]).collect();
        let floors = sums.map(|sum| vec![f64::INFINITY; sum.min(last) / BLOCK + 1]).collect();
        Self { diagonals, floors, beyond: vec![0.0; job + 1], last }
    }

    /// Expected makespans, in steps, of the states whose work and age sum to `sum`, by age, and the least of each
    /// block of [`BLOCK`] ages.
    fn diagonal_of(&self, sum: usize) -> (&[f64], &[f64]) {
        (&self.diagonals[sum], &self.floors[sum])
    }

    fn makespan_at(&self, left: usize, age: usize) -> f64 {
        if age >= self.last { self.beyond[left] } else { self.diagonals[left + age][age] }
    }

    fn put_makespan(&mut self, left: usize, age: usize, value: f64) {
        if age >= self.last {
            self.beyond[left] = value;
        } else {
            self.diagonals[left + age][age] = value;
            let floor = &mut self.floors[left + age][age / BLOCK];
            *floor = floor.min(value + steps(age));
        }
    }
}
