//! Spot checks: another host repeats a part of a task, and the results are compared.
//!
//! All programs of a bag but `noop` leave a trail that can't be known without the work; a check
//! computes one segment of it. The CPU time of a kernel's repetitions also limits how many of them
//! there can have been.

use std::ffi::OsString;
use std::time::Duration;

use crate::cli::arguments::{CommandRequest, parse};
use crate::meter::WorkAmount;
use crate::parallel::{self, TeamPlan};
use crate::result::TaskResult;
use crate::run::TaskComputation;
use crate::trail::{TrailSegment, WorkTrail};

/// Greatest plausible ratio between the CPU times that one repetition takes on two hosts.
const MOST_TIMES: f64 = 4.0;

/// Least CPU time of a block of a parallel job: its 32,768 dependent steps take at least four
/// cycles each at 6 GHz.
const LEAST_BLOCK: Duration = Duration::from_micros(20);

/// Order to compute a part of a task's work again, to check the task's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckOrder {
    /// Arguments of the task program without the nonce.
    pub arguments: Vec<String>,
    /// Amount of work to compute again.
    pub amount: CheckAmount,
    part: CheckPart,
}

/// Amount of a task's work that a check computes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckAmount {
    /// A number of repetitions of the program, out of the number that the task's answer claims.
    Repetitions {
        /// Number of repetitions to compute again.
        part: u64,
        /// Number of repetitions of the whole task.
        all: u64,
    },
    /// CPU time of the part to compute again, if the whole task took the ordered CPU time.
    CpuTime(Duration),
}

/// The part of a task's work that a check computes again, to compare the hashes of the computed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckPart {
    /// Passes of the program `vector` that end at the point of the task's trail (recorded hashes) with the given index.
    Passes(usize),
    /// Repetitions of a kernel that end at the point of the task's trail (recorded hashes) with the given index.
    Repetitions(usize),
    /// Work of one rank of a parallel job in one phase (by its index in the job's block counts), and the CPU time that was ordered
    /// for the whole job, if any.
    Rank(usize, Option<Duration>),
}

impl CheckOrder {
    /// Chooses the part of a task to repeat, from its program's arguments, its nonce, its answer
    /// and a number drawn after the answer had arrived. `Ok(None)`: nothing can be compared.
    ///
    /// # Errors
    ///
    /// In words: the answer lacks what its program always writes.
    pub fn draw(
        arguments: &[String],
        nonce: u64,
        answer: &TaskResult,
        drawn: u64,
    ) -> Result<Option<Self>, String> {
        let Ok(CommandRequest::Job(job)) = parse(arguments.iter().map(OsString::from)) else {
            return Ok(None);
        };
        let is_kernel = match &job.program {
            TaskComputation::Vector { .. } => false,
            TaskComputation::Nas { .. } | TaskComputation::Ed { .. } => true,
            TaskComputation::Parallel(plan) => {
                return draw_rank(arguments, (plan, job.amount, nonce), answer, drawn);
            }
            TaskComputation::Noop => return Ok(None),
        };
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
        let Some(point) = draw_point(trail, is_kernel, drawn) else { return Ok(None) };
        let Some(segment) = trail.segment(point, nonce) else { return Ok(None) };
        // A measurement of one pass of `vector` includes the set-up and the check, each as long as
        // a pass.
        let measured = |passes: u64| match is_kernel {
            true => passes,
            false => passes.saturating_add(2).div_ceil(3),
        };
        let (part, all) = (measured(segment.passes), measured(answer.repetitions));
        let amount = CheckAmount::Repetitions { part, all };
        let arguments = with_segment(arguments, segment);
        let part = if is_kernel { CheckPart::Repetitions(point) } else { CheckPart::Passes(point) };
        Ok(Some(Self { arguments, amount, part }))
    }

    /// Compares an answer with the repeated part; `ordered` is the CPU time ordered for the first
    /// run.
    ///
    /// # Errors
    ///
    /// In words: how the answer differs from the repeated part.
    pub fn compare(
        &self,
        answer: &TaskResult,
        ordered: Duration,
        again: &TaskResult,
    ) -> Result<(), String> {
        let points = answer.trail.as_ref().map_or(&[][..], |trail| &trail.points);
        let (which, place, claimed) = match self.part {
            CheckPart::Passes(at) | CheckPart::Repetitions(at) => ("point", at, points.get(at)),
            CheckPart::Rank(at, _) => ("place", at, answer.trails.get(at)),
        };
        if claimed.is_none() || claimed != again.trail_end.as_ref() {
            return Err(format!(
                "{which} {place} of its trail is {:x}, but {:x} when computed again",
                claimed.copied().unwrap_or_default(),
                again.trail_end.unwrap_or_default()
            ));
        }
        match self.part {
            CheckPart::Passes(_) => Ok(()),
            CheckPart::Repetitions(_) => {
                // A segment of one repetition may have a drawn input, whose figures are not in the
                // answer.
                if !again.figures.is_empty() {
                    compare_figures(answer, again)?;
                }
                compare_amounts(("repetitions", answer.repetitions), ordered, again)
            }
            CheckPart::Rank(_, ordered) => {
                let all = answer.blocks.iter().fold(0, |all: u64, it| all.saturating_add(*it));
                let compare = |ordered| compare_amounts(("blocks of work", all), ordered, again);
                ordered.map_or(Ok(()), compare)
            }
        }
    }
}

/// Returns the arguments of a program, with an added argument that selects one segment of its work.
fn with_segment(arguments: &[String], segment: TrailSegment) -> Vec<String> {
    let segment = ["--segment".to_owned(), segment.to_argument()];
    arguments.iter().cloned().chain(segment).collect()
}

/// Chooses the point of a trail (hashes recorded during the work) that ends the segment of work to repeat; `None`: the trail has no
/// point. For kernels with segments of one repetition, segments with a drawn input are preferred.
fn draw_point(trail: &WorkTrail, is_kernel: bool, drawn: u64) -> Option<usize> {
    let points = trail.points.len() as u64;
    let is_single = is_kernel && trail.every == 1 && points > 1;
    let point = match is_single {
        true => 2 * (drawn % (points / 2)) + 1,
        false => drawn.checked_rem(points)?,
    };
    usize::try_from(point).ok()
}

/// Chooses one rank and phase of a parallel job to compute again, as [`CheckOrder::draw`] chooses a part of other programs' work.
fn draw_rank(
    arguments: &[String],
    (plan, wanted, nonce): (&TeamPlan, WorkAmount, u64),
    answer: &TaskResult,
    drawn: u64,
) -> Result<Option<CheckOrder>, String> {
    let told = parallel::told_phases(plan.ranks(), plan.phases) as usize * plan.ranks();
    if told == 0 {
        return Ok(None);
    }
    let (blocks, trails) = (&answer.blocks, &answer.trails);
    if blocks.len() != told || trails.len() != told {
        let (blocks, trails) = (blocks.len(), trails.len());
        return Err(format!(
            "its answer has {blocks} amounts of work and {trails} trails instead of {told} of each"
        ));
    }
    let all = blocks.iter().fold(0, |all: u64, it| all.saturating_add(*it));
    let ordered = match wanted {
        WorkAmount::CpuTime(time) => Some(time.mul_f64(plan.total_usage())),
        WorkAmount::Repetitions(_) => None,
    };
    // A rank goes past what it has to do by a block in each phase.
    let can_be = |ordered: Duration| {
        let blocks = (ordered.mul_f64(MOST_TIMES).div_duration_f64(LEAST_BLOCK)) as u64;
        all <= blocks.saturating_add(told as u64)
    };
    if let Some(ordered) = ordered.filter(|ordered| !can_be(*ordered)) {
        let ordered = ordered.as_secs_f64();
        return Err(format!("it claims {all} blocks of work, but {ordered:.3} s were ordered"));
    }
    // Choose among the ranks and phases with any work.
    let busy: Vec<usize> = (0..told).filter(|place| blocks[*place] > 0).collect();
    let Some(place) = drawn.checked_rem(busy.len() as u64) else { return Ok(None) };
    let place = busy[usize::try_from(place).unwrap_or_default()];
    let segment = parallel::rank_segment(plan, nonce, blocks, place);
    Ok(segment.map(|segment| {
        #[expect(clippy::cast_precision_loss, reason = "a part of a time")]
        let part = segment.passes as f64 / all as f64;
        let amount = match ordered {
            Some(ordered) => CheckAmount::CpuTime(ordered.mul_f64(part)),
            None => CheckAmount::Repetitions { part: segment.passes, all },
        };
        let part = CheckPart::Rank(place, ordered);
        CheckOrder { arguments: with_segment(arguments, segment), amount, part }
    }))
}

/// Compares, bit by bit, the figures of an answer with those of its repetition.
fn compare_figures(answer: &TaskResult, again: &TaskResult) -> Result<(), String> {
    let (of_answer, of_again) = (&answer.figures, &again.figures);
    if of_answer.len() != of_again.len() {
        let (count, other) = (of_answer.len(), of_again.len());
        return Err(format!("it has {count} figures, but {other} when computed again"));
    }
    let mut both = of_answer.iter().zip(of_again);
    match both.find(|(one, other)| one.computed.to_bits() != other.computed.to_bits()) {
        None => Ok(()),
        Some((one, other)) => Err(format!(
            "{} is {:?}, but {:?} when computed again",
            one.name, one.computed, other.computed
        )),
    }
}

/// Checks that the amount of work that an answer claims fits the ordered CPU time, at the speed measured when a part of the work
/// was repeated.
fn compare_amounts(
    (what, count): (&str, u64),
    ordered: Duration,
    again: &TaskResult,
) -> Result<(), String> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let took = count as f64 * again.cpu_seconds / again.repetitions.max(1) as f64;
    let ordered = ordered.as_secs_f64();
    // One repetition is done however long it takes.
    if took * MOST_TIMES < ordered || (count > 1 && took > ordered * MOST_TIMES) {
        return Err(format!(
            "it claims {count} {what}, which took {took:.3} s of CPU time when computed again; \
             {ordered:.3} s were ordered"
        ));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;
    use crate::run::ProcessWork;

    const NONCE: u64 = 77;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Runs a program with this amount of work, and returns its result.
    fn run(arguments: &[String], amount: &str) -> TaskResult {
        let given = arguments.iter().cloned().chain(words(&format!("{amount} --nonce {NONCE}")));
        let Ok(CommandRequest::Job(job)) = parse(given.map(OsString::from)) else {
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
        for line in ["ep", "is", "cg", "mg", "ft", "sp", "ed --id 7"] {
            let program = words(line);
            let honest = run(&program, "--work 4");
            let trail = honest.trail.clone().unwrap();
            assert_eq!((trail.every, trail.points.len()), (1, 4), "{line}");
            for number in 0..3 {
                let order = drawn(&program, &honest, number);
                // However much is ordered, a segment is all that is computed.
                let again = run(&order.arguments, "--cpu-time 1us");
                let amount = CheckAmount::Repetitions { part: again.repetitions, all: 4 };
                assert_eq!(order.amount, amount, "{line}");
                let ordered = Duration::from_secs_f64(again.cpu_seconds * 4.0);
                assert_eq!(order.compare(&honest, ordered, &again), Ok(()), "{line}");
                for (repetitions, why) in [(1, "it claims 1 rep"), (1_000, "it claims 1000 rep")] {
                    let lie = TaskResult { repetitions, ..honest.clone() };
                    let ordered = Duration::from_secs_f64(again.cpu_seconds * 20.0);
                    let no = order.compare(&lie, ordered, &again).expect_err(line);
                    assert!(no.contains(why), "{no}");
                }
            }
            // One repetition was computed, and the right number of them is said: nobody knows the trail of the others.
            let alone = run(&program, "--work 1");
            let digest = honest.digest.clone();
            let points = vec![alone.trail_end.unwrap(); 4];
            let trail = Some(WorkTrail { every: 1, points });
            let lazy = TaskResult { repetitions: 4, digest, trail, ..alone.clone() };
            let given = serde_json::to_string(&lazy).unwrap();
            let verdict = crate::answer::check(&program, NONCE, &given);
            assert_eq!(verdict, crate::answer::Verdict::Right, "{line}: it is right by itself");
            for number in 0..2 {
                let order = drawn(&program, &lazy, number);
                let again = run(&order.arguments, "--work 1");
                let ordered = Duration::from_secs_f64(again.cpu_seconds * 4.0);
                let no = order.compare(&lazy, ordered, &again).expect_err(line);
                assert!(no.contains("of its trail is"), "{no}");
            }
            let none = TaskResult { trail: None, ..lazy };
            let no = CheckOrder::draw(&program, NONCE, &none, 3).unwrap_err();
            assert_eq!(no, "its answer has no trail");
            // One repetition is done, however little was ordered, and a check computes it.
            let order = drawn(&program, &alone, 5);
            let again = run(&order.arguments, "--work 9");
            let nothing = Duration::from_nanos(1);
            assert_eq!(order.compare(&alone, nothing, &again), Ok(()), "{line}");
            let mut published = alone;
            for figure in &mut published.figures {
                figure.computed = figure.reference.unwrap_or(figure.computed) * (1.0 + 1e-14);
            }
            let no = order.compare(&published, nothing, &again);
            assert!(line == "is" || no.is_err(), "{line}");
        }
    }

    /// The answer of a job whose ranks did these blocks of work, phase by phase: its ranks are processes, which a test of
    /// several threads can't fork, and each trail is computed here as another host computes it.
    fn job_answer(program: &[String], blocks: Vec<u64>) -> TaskResult {
        let Ok(CommandRequest::Job(ProcessWork {
            program: TaskComputation::Parallel(plan), ..
        })) = parse(program.iter().map(OsString::from))
        else {
            panic!("{program:?}")
        };
        let trail_of = |place| {
            let segment = parallel::rank_segment(&plan, NONCE, &blocks, place).unwrap();
            if segment.passes == 0 {
                return segment.trail;
            }
            run(&with_segment(program, segment), "").trail_end.unwrap()
        };
        let trails = (0..blocks.len()).map(trail_of).collect();
        let noop = run(&words("noop"), "");
        TaskResult { kind: "parallel".to_owned(), figures: Vec::new(), blocks, trails, ..noop }
    }

    #[test]
    fn what_a_rank_did_in_a_phase_is_computed_again_and_a_job_that_waited_is_found() {
        let program = words("parallel --processes 2 --phases 3 --seed 4 --memory 300kB");
        let honest = job_answer(&program, vec![1, 2, 3, 0, 5, 6]);
        let timed = |cpu_time: f64| {
            let amount = words(&format!("--cpu-time {}us", (cpu_time * 1e6) as u64));
            program.iter().cloned().chain(amount).collect::<Vec<_>>()
        };
        for number in 0..6 {
            let order = drawn(&program, &honest, number);
            let again = run(&order.arguments, "");
            assert!(again.repetitions > 0, "a rank that did nothing is not looked at");
            assert_eq!(order.compare(&honest, Duration::ZERO, &again), Ok(()), "{number}");
            // Nobody knows a trail who has not done the work, though what it comes to is known.
            let lazy = TaskResult { trails: vec![9; 6], ..honest.clone() };
            let no = order.compare(&lazy, Duration::ZERO, &again).unwrap_err();
            assert!(no.contains("of its trail is 9"), "{no}");
            // 17 blocks of two ranks at full use.
            let took = again.cpu_seconds / again.repetitions as f64 * 17.0 / 2.0;
            for (times, is_right) in [(1.0, true), (20.0, false)] {
                let order = drawn(&timed(took * times), &honest, number);
                let found = order.compare(&honest, Duration::ZERO, &again);
                assert_eq!(found.is_ok(), is_right, "{found:?}");
            }
        }
        // More than any processor can have done would keep the other host busy for ever.
        let boast = TaskResult { blocks: vec![1 << 40; 6], ..honest.clone() };
        let no = CheckOrder::draw(&timed(0.1), NONCE, &boast, 3).unwrap_err();
        assert!(no.contains("blocks of work, but 0.200 s were ordered"), "{no}");
        let none = TaskResult { trails: Vec::new(), ..honest };
        let no = CheckOrder::draw(&program, NONCE, &none, 3).unwrap_err();
        assert_eq!(no, "its answer has 6 amounts of work and 0 trails instead of 6 of each");
    }

    #[test]
    fn of_some_programs_nothing_can_be_compared() {
        let answer = run(&words("noop"), "");
        for line in ["noop", "parallel --processes 200 --phases 100", "mine"] {
            assert_eq!(CheckOrder::draw(&words(line), NONCE, &answer, 1), Ok(None), "{line}");
        }
    }
}
