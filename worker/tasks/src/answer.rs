//! Checks whether a task's answer is right, for a reader who has not seen the computation: the coordinator, or the
//! reader of a log.
//!
//! The answer's own claims don't count: neither its verdict nor the references that it holds. The figures of NAS
//! kernels and ED are compared with the published ones here. The digest of an answer begins with a nonce that the task
//! got at its start, and includes what every repetition, pass or phase computed. So an answer can't be taken from
//! another task or claim another amount of work: `vector` sums up all of its memory, `parallel` the last results of its
//! ranks, both known in closed form; NAS kernels and ED fold the bits of their figures into the digest after each
//! repetition of the published input, which is every second repetition.
//!
//! All of this is computed here without doing the work, and a liar who reads this file could do the same: a right
//! answer shows that nothing went wrong, not that nobody lied. Whether the work took its time is checked by the
//! coordinator's clock.

use std::ffi::OsString;

use dormouse_units::TaskId;
use dormouse_vm::shares::PPM;

use crate::cli::arguments::{CommandRequest, parse};
use crate::digest::{fold_count, fold_figures, mix_bits, text};
use crate::nas::input::published_among;
use crate::result::{Figure, TaskResult};
use crate::run::{NasKernel, TaskComputation};
use crate::trail::WorkTrail;
use crate::{ed, nas, parallel, vector};

/// Greatest number of repetitions for which a check recomputes the digest, which takes milliseconds.
const MOST_REPETITIONS: u64 = 1_000_000;

/// Verdict on an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer is right.
    Right,
    /// The answer is wrong; the reason in words.
    Wrong(String),
    /// The answer can't be checked; the reason in words.
    Unchecked(&'static str),
}

/// Checks the answer of a task whose program got the given arguments and nonce.
#[must_use]
pub fn check(arguments: &[String], nonce: u64, answer: &str) -> Verdict {
    let arguments = arguments.iter().filter(|word| *word != "--result").map(OsString::from);
    match parse(arguments) {
        Ok(CommandRequest::Job(job)) => judge_answer(&job.program, nonce, answer),
        _ => Verdict::Unchecked("its program is not known"),
    }
}

/// Checks the answer of a parallel job of `processes` processes and `phases` phases, whose work began with the given seed and
/// nonce.
#[must_use]
pub fn check_job(processes: u32, phases: u32, (seed, nonce): (u64, u64), answer: &str) -> Verdict {
    let usage = vec![PPM; processes as usize];
    let plan = parallel::TeamPlan { phases, usage, speed: PPM, memory: 0, seed };
    judge_answer(&TaskComputation::Parallel(plan), nonce, answer)
}

/// Returns whether the answer of a parallel job of this size can be checked: only if processes and phases aren't too many does it
/// list the work of each process in each phase.
#[must_use]
pub fn can_check_job(processes: u32, phases: u32) -> bool {
    parallel::told_phases(processes as usize, phases) > 0
}

/// Returns the nonce of a task, derived from the run's secret number `of_run`.
#[must_use]
pub fn nonce(of_run: u64, task: TaskId) -> u64 {
    mix_bits(of_run ^ mix_bits(u64::from(task.get())))
}

/// Returns the right answer of a task after `repetitions` repetitions, computed without doing the work, for simulated workers;
/// `arguments` has the nonce too. `None`: unknown.
#[must_use]
pub fn reckoned(arguments: &[String], repetitions: u64) -> Option<TaskResult> {
    let Ok(CommandRequest::Job(job)) = parse(arguments.iter().map(OsString::from)) else {
        return None;
    };
    let mut answer = TaskResult {
        kind: job.program.name().to_owned(),
        class: None,
        id: None,
        memory_bytes: None,
        verified: Some(true),
        figures: Vec::new(),
        repetitions,
        cpu_seconds: 0.0,
        cpu_seconds_wanted: None,
        rank_cpu_seconds: Vec::new(),
        units: repetitions,
        digest: None,
        trail: None,
        trail_end: None,
        blocks: Vec::new(),
        trails: Vec::new(),
    };
    match &job.program {
        TaskComputation::Vector { bytes } => {
            answer.units = vector::units_after(*bytes, repetitions)?;
        }
        TaskComputation::Parallel(plan) => {
            let told = parallel::told_phases(plan.ranks(), plan.phases);
            answer.blocks = vec![repetitions; plan.ranks().checked_mul(told as usize)?];
            if told == 0 {
                // The answer has too little in it to be checked.
                answer.digest = Some(text(job.nonce));
                return Some(answer);
            }
            answer.units = repetitions.checked_mul(answer.blocks.len() as u64)?;
        }
        program => {
            answer.figures = as_published(published_figures(program)?)?;
            // The points of the trail can't be known without the work.
            answer.trail = Some(WorkTrail::default());
        }
    }
    answer.digest = Some(text(expected_digest(&job.program, job.nonce, &answer).ok()?));
    Some(answer)
}

/// Returns the figures with the published value of each as its computed value; `None` if a figure has no published value.
fn as_published(figures: Vec<Figure>) -> Option<Vec<Figure>> {
    figures.into_iter().map(|of| Some(Figure { computed: of.reference?, ..of })).collect()
}

/// Returns the published figures of a program; `None` if it has none.
fn published_figures(program: &TaskComputation) -> Option<Vec<Figure>> {
    Some(match program {
        TaskComputation::Nas { kernel, class } => match kernel {
            NasKernel::Ep => nas::ep::class_references(*class),
            NasKernel::Is => nas::is::key_references(),
            NasKernel::Cg => nas::cg::class_references(*class),
            NasKernel::Mg => nas::mg::class_references(*class),
            NasKernel::Ft => nas::ft::class_references(*class),
            NasKernel::Sp => nas::sp::class_references(*class),
        },
        TaskComputation::Ed { class, id } => ed::task_references(*class, *id),
        TaskComputation::Vector { .. } | TaskComputation::Parallel(_) | TaskComputation::Noop => {
            return None;
        }
    })
}

/// Checks that answers of a program can be checked.
///
/// # Errors
///
/// The reason why they can't.
fn can_be_checked(program: &TaskComputation) -> Result<(), &'static str> {
    match program {
        TaskComputation::Nas { .. } | TaskComputation::Ed { .. } => {
            let references = published_figures(program).unwrap_or_default();
            let is_published = references.iter().any(|figure| figure.reference.is_some());
            is_published.then_some(()).ok_or("there is no published reference for its input")
        }
        TaskComputation::Parallel(plan)
            if parallel::told_phases(plan.ranks(), plan.phases) == 0 =>
        {
            Err("it has too many phases and processes to say what each of them did")
        }
        TaskComputation::Vector { .. } | TaskComputation::Parallel(_) => Ok(()),
        TaskComputation::Noop => Err("its program computes nothing"),
    }
}

/// Judges an answer. An answer in a wrong format counts as wrong if the right format could have been checked: otherwise
/// a worker could choose not to be checked.
fn judge_answer(program: &TaskComputation, nonce: u64, answer: &str) -> Verdict {
    let checked = can_be_checked(program);
    let other = |what: &'static str| match checked {
        Ok(()) => Verdict::Wrong(what.to_owned()),
        Err(why) => Verdict::Unchecked(why),
    };
    let Ok(answer) = serde_json::from_str::<TaskResult>(answer) else {
        return other("it is not what the known programs leave");
    };
    if answer.kind != program.name() {
        return other("another program than was started left it");
    }
    if let Some(wrong) = answer.figures.iter().find(|figure| figure.verified() == Some(false)) {
        return Verdict::Wrong(format!("{} is {}", wrong.name, wrong.computed));
    }
    if let Err(why) = checked {
        return Verdict::Unchecked(why);
    }
    let Some(digest) = &answer.digest else { return other("it has no digest") };
    match expected_digest(program, nonce, &answer) {
        Ok(expected) if text(expected) == *digest => Verdict::Right,
        Ok(expected) => Verdict::Wrong(format!("its digest is {digest}, not {}", text(expected))),
        Err(verdict) => verdict,
    }
}

/// Returns the digest that a right answer has for the amount of work that the given answer claims; the error is the verdict if the
/// answer is wrong anyway or can't be checked.
fn expected_digest(
    program: &TaskComputation,
    nonce: u64,
    answer: &TaskResult,
) -> Result<u64, Verdict> {
    let wrong = |what: &str| Verdict::Wrong(what.to_owned());
    match program {
        TaskComputation::Nas { .. } | TaskComputation::Ed { .. } => {
            of_repetitions(published_figures(program).unwrap_or_default(), nonce, answer)
        }
        TaskComputation::Vector { bytes } => {
            let sum = vector::expected_sum(*bytes, nonce, answer.repetitions, answer.units);
            sum.ok_or_else(|| wrong("its units of work are not a whole number of passes"))
        }
        TaskComputation::Parallel(plan) => {
            let sum = parallel::expected_sum(plan, nonce, &answer.blocks);
            let all = answer.blocks.iter().fold(0_u64, |all, blocks| all.saturating_add(*blocks));
            let sum = sum.filter(|_| all == answer.units);
            sum.ok_or_else(|| wrong("it does not say what each process did in each phase"))
        }
        TaskComputation::Noop => Err(Verdict::Unchecked("its program computes nothing")),
    }
}

/// Returns the digest of a kernel's right answer after as many repetitions as the given answer claims; the error is the verdict if
/// the answer is wrong anyway or can't be checked.
fn of_repetitions(
    references: Vec<Figure>,
    nonce: u64,
    answer: &TaskResult,
) -> Result<u64, Verdict> {
    let names = |figures: &[Figure]| figures.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    if answer.repetitions == 0 {
        return Err(Verdict::Wrong("it claims no repetition".to_owned()));
    }
    if names(&references) != names(&answer.figures) {
        return Err(Verdict::Wrong(
            "its figures have other names than those of its program".to_owned(),
        ));
    }
    for (right, ours) in references.into_iter().zip(&answer.figures) {
        let figure = Figure { computed: ours.computed, ..right };
        if figure.verified() == Some(false) {
            return Err(Verdict::Wrong(format!("{} is {}", figure.name, figure.computed)));
        }
    }
    if answer.repetitions > MOST_REPETITIONS {
        return Err(Verdict::Unchecked("it has more repetitions than are checked"));
    }
    // Where there is no trail, as in older logs, every repetition was of the published input.
    let all =
        |count: u64| (0..count).fold(nonce, |digest, _| fold_figures(digest, &answer.figures));
    Ok(match &answer.trail {
        Some(_) => fold_count(all(published_among(answer.repetitions)), answer.repetitions),
        None => all(answer.repetitions),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    const NONCE: u64 = 77;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Runs the program of this command line with this nonce, and returns its result.
    fn answer(line: &str, nonce: u64) -> TaskResult {
        let given = format!("{line} --nonce {nonce}");
        let Ok(CommandRequest::Job(job)) = parse(words(&given).into_iter().map(OsString::from))
        else {
            panic!("{given}")
        };
        job.run().unwrap()
    }

    fn judged(line: &str, of: &TaskResult) -> Verdict {
        check(&words(line), NONCE, &serde_json::to_string(of).unwrap())
    }

    #[test]
    fn an_answer_can_be_reckoned_without_the_work() {
        for line in ["ep --class S", "is", "mg", "ft", "sp", "ed --id 7", "vector --memory 3MB"] {
            let given = words(&format!("{line} --nonce {NONCE}"));
            let reckoned = reckoned(&given, 3).expect(line);
            assert_eq!(judged(line, &reckoned), Verdict::Right, "{line}");
            let of_another = answer(&format!("{line} --work 3"), NONCE + 1);
            assert_ne!(reckoned.digest, of_another.digest, "{line}");
        }
        assert_eq!(reckoned(&words("noop"), 1), None);
    }

    #[test]
    fn what_really_ran_is_right_and_only_as_what_it_is() {
        for line in [
            "ep --class S",
            "is --work 2",
            "cg",
            "mg --work 3",
            "ft",
            "sp",
            "ed --class S --id 7 --work 2",
            "vector --memory 3MB --work 5",
        ] {
            let right = answer(line, NONCE);
            assert_eq!(judged(line, &right), Verdict::Right, "{line}");
            // Of another task, of another amount of work, with another figure.
            let another = answer(line, NONCE + 1);
            let more = TaskResult { repetitions: right.repetitions + 1, ..right.clone() };
            let mut figures = right.figures.clone();
            figures[0].computed *= 1.0 + 1e-6;
            figures[0].reference = Some(figures[0].computed);
            let figures = TaskResult { figures, ..right.clone() };
            let of_vector = line.starts_with("vector");
            for (n, wrong) in [another, more, figures].iter().enumerate() {
                // What the memory of vector came to is in the digest, not in a figure.
                let is_wrong = matches!(judged(line, wrong), Verdict::Wrong(_));
                assert!(is_wrong || (of_vector && n == 2), "{line}: {n}");
            }
        }
    }

    #[test]
    fn what_nobody_can_check_is_not_called_right() {
        let unchecked = |line: &str, of: &TaskResult| {
            assert!(
                matches!(judged(line, of), Verdict::Unchecked(_)),
                "{line}: {:?}",
                judged(line, of)
            );
        };
        let without = answer("ed --class S --id 100", NONCE);
        unchecked("ed --class S --id 100", &without);
        let right = answer("vector --memory 1MB", NONCE);
        unchecked("mine", &right);
        unchecked("noop", &right);
        // A number that would have the reader reckon for years.
        let cg = answer("cg", NONCE);
        unchecked("cg", &TaskResult { repetitions: u64::MAX, ..cg });
        let huge = TaskResult { repetitions: u64::MAX, units: u64::MAX, ..right };
        assert!(matches!(judged("vector --memory 1MB", &huge), Verdict::Wrong(_)));
    }

    #[test]
    fn a_worker_can_not_choose_that_nobody_checks_its_answer() {
        let is_wrong = |line: &str, of: &TaskResult| {
            assert!(
                matches!(judged(line, of), Verdict::Wrong(_)),
                "{line}: {:?}",
                judged(line, of)
            );
        };
        let right = answer("vector --memory 1MB", NONCE);
        is_wrong("vector --memory 1MB", &TaskResult { digest: None, ..right.clone() });
        is_wrong("cg", &right);
        is_wrong("vector --memory 1MB", &TaskResult { kind: "noop".to_owned(), ..right });
        for text in ["{\"verified\": true}", "no JSON", ""] {
            let (of_cg, of_job) =
                (check(&words("cg"), NONCE, text), check_job(2, 3, (4, NONCE), text));
            assert!(matches!(of_cg, Verdict::Wrong(_)), "{text}: {of_cg:?}");
            assert!(matches!(of_job, Verdict::Wrong(_)), "{text}: {of_job:?}");
        }
    }

    /// Ranks are processes, which a test of several threads can't fork.
    #[test]
    fn a_jobs_answer_is_known_from_what_each_process_did() {
        let line = "parallel --processes 2 --phases 3 --seed 4";
        let Ok(CommandRequest::Job(job)) = parse(words(line).into_iter().map(OsString::from))
        else {
            panic!("{line}")
        };
        let TaskComputation::Parallel(plan) = &job.program else { panic!("{line}") };
        let blocks = vec![1, 2, 3, 4, 5, 6];
        let digest = parallel::expected_sum(plan, NONCE, &blocks).map(text);
        let vector = answer("vector --memory 1MB", NONCE);
        let kind = "parallel".to_owned();
        let right = TaskResult { kind, figures: Vec::new(), blocks, units: 21, digest, ..vector };
        assert_eq!(judged(line, &right), Verdict::Right);
        let of_job = check_job(2, 3, (4, NONCE), &serde_json::to_string(&right).unwrap());
        assert_eq!(of_job, Verdict::Right);
        let mut other = right.clone();
        other.blocks.swap(0, 1);
        assert!(matches!(judged(line, &other), Verdict::Wrong(_)));
        let idle = TaskResult { blocks: vec![0; 6], ..right.clone() };
        assert!(matches!(judged(line, &idle), Verdict::Wrong(_)));
        let short = TaskResult { blocks: vec![21], ..right.clone() };
        assert!(matches!(judged(line, &short), Verdict::Wrong(_)));
        let silent = TaskResult { blocks: Vec::new(), ..right };
        assert!(matches!(judged(line, &silent), Verdict::Wrong(_)));
        // More numbers than a report holds.
        let many = "parallel --processes 2 --phases 201 --seed 4";
        assert!(matches!(judged(many, &silent), Verdict::Unchecked(_)));
    }
}
