//! Spot checks: a part of a task that another host computes again, and what its answer has to come to.
//!
//! `vector` leaves a trail that nobody knows without the work; a check computes one segment of it. The repetitions of a
//! kernel are all alike; a check does a few, whose figures have to be the same to the last bit, and whose CPU time says
//! how many there can have been.

use std::ffi::OsString;
use std::time::Duration;

use crate::cli::arguments::{Request, parse};
use crate::result::TaskResult;
use crate::run::Program;
use crate::trail::TrailSegment;

/// Repetitions of a kernel that a check does, as far as its CPU time is known.
pub const REPETITIONS: u32 = 4;
/// By so many times the CPU time of a repetition may differ between two hosts.
const MOST_TIMES: f64 = 4.0;

/// A part of a task that is to be computed again.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckOrder {
    /// Arguments of the task program, but for the nonce.
    pub arguments: Vec<String>,
    /// How many times as much CPU time it takes as one repetition, as workers measure that.
    pub repetitions: u64,
    part: CheckPart,
}

/// The part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckPart {
    /// The segment before this point of its trail.
    Segment(usize),
    /// A few repetitions.
    Repetitions,
}

impl CheckOrder {
    /// The part of a task that is computed again, by its program's arguments, its nonce, its answer and a number drawn after
    /// the answer had come.
    ///
    /// # Errors
    /// In words: the answer does not have what its program leaves. `Ok(None)`: there is nothing that could be compared.
    pub fn draw(
        arguments: &[String],
        nonce: u64,
        answer: &TaskResult,
        drawn: u64,
    ) -> Result<Option<Self>, String> {
        let Ok(Request::Job(job)) = parse(arguments.iter().map(OsString::from)) else {
            return Ok(None);
        };
        match job.program {
            Program::Vector { .. } => {
                let trail = answer.trail.as_ref().ok_or("its answer has no trail")?;
                let points = trail.points.len() as u64;
                // Half of its passes at most lie behind the last point.
                let reaches = trail.every.checked_mul(points.saturating_add(1));
                if trail.every == 0 || reaches.is_none_or(|passes| passes < answer.repetitions) {
                    return Err(format!(
                        "its trail has {points} points, {} passes apart, for {} passes",
                        trail.every, answer.repetitions
                    ));
                }
                let Some(point) = drawn.checked_rem(points) else { return Ok(None) };
                let point = usize::try_from(point).unwrap_or_default();
                let Some(segment) = trail.segment(point, nonce) else { return Ok(None) };
                let mut arguments = arguments.to_vec();
                arguments.extend(["--segment".to_owned(), segment.argument()]);
                let TrailSegment { passes, .. } = segment;
                // What is measured of one pass has the set-up and the check beside it, which are as long.
                let repetitions = passes.saturating_add(2).div_ceil(3);
                Ok(Some(Self { arguments, repetitions, part: CheckPart::Segment(point) }))
            }
            Program::Nas { .. } | Program::Ed { .. } => {
                let (arguments, part) = (arguments.to_vec(), CheckPart::Repetitions);
                Ok(Some(Self { arguments, repetitions: REPETITIONS.into(), part }))
            }
            Program::Parallel(_) | Program::Noop => Ok(None),
        }
    }

    /// Compares an answer with what another host computed again, where so much CPU time was ordered of the first.
    ///
    /// # Errors
    /// In words: where they differ.
    pub fn compare(
        &self,
        answer: &TaskResult,
        ordered: Duration,
        again: &TaskResult,
    ) -> Result<(), String> {
        if let CheckPart::Segment(point) = self.part {
            let claimed = answer.trail.as_ref().and_then(|trail| trail.points.get(point)).copied();
            return match (claimed, again.trail_end) {
                (Some(claimed), Some(end)) if claimed == end => Ok(()),
                (claimed, end) => Err(format!(
                    "point {point} of its trail is {:x}, and {:x} where it was computed again",
                    claimed.unwrap_or_default(),
                    end.unwrap_or_default()
                )),
            };
        }
        compare_figures(answer, again)?;
        compare_amounts(answer, ordered, again)
    }
}

/// Compares what a repetition came to, to the last bit.
fn compare_figures(answer: &TaskResult, again: &TaskResult) -> Result<(), String> {
    let (of_answer, of_again) = (&answer.figures, &again.figures);
    if of_answer.len() != of_again.len() {
        let (count, other) = (of_answer.len(), of_again.len());
        return Err(format!("it has {count} figures, and {other} where it was computed again"));
    }
    let mut both = of_answer.iter().zip(of_again);
    match both.find(|(one, other)| one.computed.to_bits() != other.computed.to_bits()) {
        None => Ok(()),
        Some((one, other)) => Err(format!(
            "{} is {:?}, and {:?} where it was computed again",
            one.name, one.computed, other.computed
        )),
    }
}

/// Compares how much was computed with how much was ordered, at the speed at which it was computed again.
fn compare_amounts(
    answer: &TaskResult,
    ordered: Duration,
    again: &TaskResult,
) -> Result<(), String> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let (count, each) =
        (answer.repetitions as f64, again.cpu_seconds / again.repetitions.max(1) as f64);
    let (took, ordered) = (count * each, ordered.as_secs_f64());
    // One repetition is done however long it takes.
    if took * MOST_TIMES < ordered || (answer.repetitions > 1 && took > ordered * MOST_TIMES) {
        return Err(format!(
            "it says {} repetitions, which are {took:.3} s of CPU time where it was computed again, and \
             {ordered:.3} s were ordered",
            answer.repetitions
        ));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    const NONCE: u64 = 77;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// What a program leaves that has really run.
    fn run(arguments: &[String], amount: &str) -> TaskResult {
        let given = arguments.iter().cloned().chain(words(&format!("{amount} --nonce {NONCE}")));
        let Ok(Request::Job(job)) = parse(given.map(OsString::from)) else {
            panic!("{arguments:?}")
        };
        job.run().unwrap()
    }

    fn drawn(arguments: &[String], answer: &TaskResult, drawn: u64) -> CheckOrder {
        CheckOrder::draw(arguments, NONCE, answer, drawn).unwrap().unwrap()
    }

    #[test]
    fn a_segment_of_vector_is_found_right_and_one_that_was_not_computed_is_not() {
        let program = words("vector --memory 1MB");
        let honest = run(&program, "--work 70");
        let ordered = Duration::from_secs(1);
        for number in 0..40 {
            let order = drawn(&program, &honest, number);
            let again = run(&order.arguments, "--cpu-time 1us");
            assert_eq!(order.compare(&honest, ordered, &again), Ok(()), "{number}");
        }
        // Right by its digest, and of one pass alone: nobody knows the rest of the trail.
        let mut lazy = honest.clone();
        let points = &mut lazy.trail.as_mut().unwrap().points;
        points[1..].iter_mut().for_each(|point| *point = 9);
        let is_found = |number| {
            let order = drawn(&program, &lazy, number);
            let again = run(&order.arguments, "--cpu-time 1us");
            order.compare(&lazy, ordered, &again).is_err()
        };
        let count = honest.trail.as_ref().unwrap().points.len() as u64;
        assert_eq!((0..count).filter(|number| is_found(*number)).count() as u64, count - 1);
        // None at all, and one that ends long before the work does.
        let short = TaskResult { repetitions: 1_000, ..honest.clone() };
        let none = TaskResult { trail: None, ..honest };
        for (lie, why) in [(none, "no trail"), (short, "for 1000 passes")] {
            let no = CheckOrder::draw(&program, NONCE, &lie, 3).unwrap_err();
            assert!(no.contains(why), "{no}");
        }
    }

    #[test]
    fn figures_that_were_published_and_not_computed_are_found_and_so_is_one_repetition_alone() {
        for line in ["ep", "cg", "mg", "ft", "sp", "ed --id 7"] {
            let program = words(line);
            let honest = run(&program, "--work 3");
            let order = drawn(&program, &honest, 5);
            let again = run(&order.arguments, "--work 2");
            let each = again.cpu_seconds / 2.0;
            let ordered = Duration::from_secs_f64(each * 3.0);
            assert_eq!(order.compare(&honest, ordered, &again), Ok(()), "{line}");
            let mut published = honest.clone();
            for figure in &mut published.figures {
                figure.computed = figure.reference.unwrap_or(figure.computed);
            }
            let no = order.compare(&published, ordered, &again).expect_err(line);
            assert!(no.contains("where it was computed again"), "{no}");
            for (repetitions, why) in [(1, "it says 1 rep"), (1_000, "it says 1000 rep")] {
                let lie = TaskResult { repetitions, ..honest.clone() };
                let ordered = Duration::from_secs_f64(each * 20.0);
                let no = order.compare(&lie, ordered, &again).expect_err(line);
                assert!(no.contains(why), "{no}");
            }
            // One repetition is done, however little was ordered.
            let one = TaskResult { repetitions: 1, ..honest };
            assert_eq!(order.compare(&one, Duration::from_nanos(1), &again), Ok(()), "{line}");
        }
    }

    #[test]
    fn of_some_programs_nothing_can_be_compared() {
        let answer = run(&words("noop"), "");
        for line in ["noop", "parallel --processes 2", "mine"] {
            assert_eq!(CheckOrder::draw(&words(line), NONCE, &answer, 1), Ok(None), "{line}");
        }
    }
}
