//! The recursion under the rules that its text means: conditional probabilities, the exact loss, a new VM
//! after a failure. For n steps of work on VMs of T ages the time grows with n · T.
//!
//! With G = 1 − F, H = ∫ G and c = restart + the expected makespan of the job on a new VM, Eq. 9 to
//! 13 times G(t) are
//!
//! N(J, t) = G(t) · c − H(t) + min over t' of { H(t') + N(J − i, t') − G(t') · c },  t' = t + i + δ.
//!
//! What is in braces is a straight line in c, which depends on t' and on J + t alone. While J grows, t
//! falls: every state adds one line to those of its J + t, with the steepest fall so far, and asks for
//! the least at a c that grows. So the lines that can still be the least are kept in a queue
//! (the convex-hull trick), and each is looked at a few times in all.

use std::collections::VecDeque;

use super::problem::steps;
use super::{Plan, Problem, ProblemError};

/// Computes the least expected makespans, in steps, of jobs of 0 to `job` steps, and the chunks that attain
/// them.
pub(super) fn solve(problem: &Problem<'_>) -> Result<Plan, ProblemError> {
    let Problem { job, checkpoint, survival, .. } = *problem;
    let (last, restart) = (survival.last(), steps(problem.restart));
    let line = |to: usize, rest: f64| EnvelopeLine {
        to,
        above: survival.lived(to) + rest,
        fall: survival.alive(to),
    };
    let mut queues: Vec<LowerEnvelope> =
        vec![LowerEnvelope::default(); job + last + checkpoint + 1];
    let (mut plan, mut values, mut makespans) =
        (Plan::new(problem), vec![0.0; last + 1], vec![0.0; last + 1]);
    plan.set_makespans(0, 0.0, &makespans);
    for left in 1..=job {
        // One chunk of all work that is left, or as far as the oldest VM gets.
        let whole = |age: usize| line((age + problem.chunk_time(left, left)).min(last), 0.0);
        // Values of jobs that are one step shorter are lines for jobs of this length.
        for age in 0..=last {
            let to = age + 1 + checkpoint;
            if left > 1 && to < last {
                queues[left + age + checkpoint].add(line(to, values[to]));
            }
        }
        // The c at which the least of the lines of a new VM is −restart.
        let of_new = queues[left + checkpoint].0.iter().copied().chain([whole(0)]);
        let again = of_new.map(|l| (l.above + restart) / l.fall).fold(f64::INFINITY, f64::min);
        if !again.is_finite() {
            return Err(ProblemError::NeverEnds { step: problem.chunk_time(1, job) });
        }
        for age in 0..=last {
            let queue = &mut queues[left + age + checkpoint];
            queue.drop_lines_before(again);
            let (mut least, mut work) = (whole(age).value_at(again), left);
            if let Some(line) = queue.0.front().filter(|line| line.value_at(again) < least) {
                (least, work) = (line.value_at(again), line.to - age - checkpoint);
            }
            let alive = survival.alive(age);
            let value = alive * again - survival.lived(age) + least;
            plan.choose_chunk(left, age, work);
            values[age] = value;
            makespans[age] = if alive > 0.0 { value / alive } else { again };
        }
        plan.set_makespans(left, again - restart, &makespans);
    }
    Ok(plan)
}

/// The line `above` − `fall` · c, a function of c: the expected steps that follow a failure. It is the value of a
/// chunk that ends when the VM has the age `to`, in steps.
#[derive(Clone, Copy, Debug)]
struct EnvelopeLine {
    to: usize,
    above: f64,
    fall: f64,
}

impl EnvelopeLine {
    fn value_at(self, c: f64) -> f64 {
        self.above - self.fall * c
    }
}

/// Lower envelope of lines in order of their slope: each line is the least of all for some c, the expected steps that
/// follow a failure.
#[derive(Clone, Debug, Default)]
struct LowerEnvelope(VecDeque<EnvelopeLine>);

impl LowerEnvelope {
    /// Adds a line that falls at least as steeply as all lines of the envelope.
    fn add(&mut self, line: EnvelopeLine) {
        while let Some(&back) = self.0.back() {
            let steeper = line.fall - back.fall;
            let needless = if steeper <= 0.0 {
                if back.above <= line.above {
                    return;
                }
                true
            } else {
                // The last line is below the one before it only where the new line is below both.
                self.0.iter().nth_back(1).is_some_and(|before| {
                    (line.above - back.above) * (back.fall - before.fall)
                        <= (back.above - before.above) * steeper
                })
            };
            if !needless {
                break;
            }
            self.0.pop_back();
        }
        self.0.push_back(line);
    }

    /// Drops the lines from the front that are not the least for `c`, the expected steps that follow a failure, or
    /// any greater c.
    fn drop_lines_before(&mut self, c: f64) {
        while let (Some(a), Some(b)) = (self.0.front(), self.0.get(1)) {
            if b.value_at(c) > a.value_at(c) {
                break;
            }
            self.0.pop_front();
        }
    }
}
