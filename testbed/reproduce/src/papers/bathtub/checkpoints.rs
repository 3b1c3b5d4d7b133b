//! Figure 8, and the printed schedule: checkpoints by the dynamic program and by Young and Daly.

use dormouse_model::DpMode;
use dormouse_policies::dp::{Plan, Problem, Rules, Survival, expected, simulate};
use dormouse_policies::young_daly;
use dormouse_units::Span;

use super::{Figures, laws, number};

/// The grid: a checkpoint and a restart take a step each.
const STEP: Span = Span::from_secs(60);
const HOUR: usize = 60;
/// The job of Figure 8a, and the one whose schedule is printed, in steps.
const JOB: usize = 4 * HOUR;
const SCHEDULED: usize = 5 * HOUR;
/// The longest job of Figure 8b, in hours.
const LONGEST: usize = 9;
/// Jobs that are simulated under a seed.
const JOBS: u64 = 10_000;
/// The mean lifetime for which the paper takes its periodic checkpoints.
const MTTF: Span = Span::from_secs(3_600);
/// What the authors' code takes for the work done again under periodic checkpoints, as a part of the job.
const AGAIN: f64 = 2.0 / 12.0;
/// The printed schedule of the job of five hours.
const PRINTED: [usize; 5] = [15, 28, 38, 59, 128];

/// Who decides when to checkpoint.
#[derive(Clone, Copy)]
enum Scheme {
    /// The dynamic program, and what it expects by its own rules.
    Program(DpMode),
    /// A period, and what is exactly expected of it.
    Period(usize),
    /// A period, reckoned as in the authors' code: its checkpoints, and a constant for the work done again.
    AsTheAuthors,
}

fn scheme(name: &str) -> Option<Scheme> {
    let minutes = || young_daly(STEP, MTTF).as_micros().div_ceil(STEP.as_micros());
    Some(match name {
        "dp" => Scheme::Program(DpMode::Conditional),
        "dp-artifact" => Scheme::Program(DpMode::Artifact),
        "young-daly" => Scheme::Period(usize::try_from(minutes()).ok()?),
        "young-daly-artifact" => Scheme::AsTheAuthors,
        _ => return None,
    })
}

/// The lifetimes of the authors' simulations, as far as a job that begins at this age can see.
fn survival(job: usize, age: usize) -> Option<Survival> {
    let law = laws::named("authors")?;
    let ages = Problem::ages(job, 1, 1, age);
    Some(Survival::new(&|hours| law.law().cdf(hours), STEP, ages))
}

const fn problem(survival: &Survival, job: usize, age: usize, rules: Rules) -> Problem<'_> {
    Problem { job, checkpoint: 1, restart: 1, age, rules, survival }
}

/// By how many per cent longer a job is expected to take that begins at this age.
fn increase(scheme: Scheme, job: usize, age: usize) -> Option<f64> {
    let survival = survival(job, age)?;
    let over = |takes: f64| 100.0 * (takes / number(job) - 1.0);
    Some(match scheme {
        Scheme::Program(mode) => {
            over(Plan::of(&problem(&survival, job, age, mode.into())).ok()?.makespan())
        }
        Scheme::Period(steps) => {
            let problem = problem(&survival, job, age, Rules::CONDITIONAL);
            over(expected(&problem, &|_, _| steps).ok()?)
        }
        Scheme::AsTheAuthors => {
            let interval = young_daly(STEP, MTTF);
            100.0 * (STEP.as_secs_f64() / interval.as_secs_f64() + AGAIN)
        }
    })
}

/// Figures of a job of four hours, by the age of its VM.
pub(super) fn by_start(name: &str) -> Option<Figures> {
    let scheme = scheme(name)?;
    let of =
        |age: usize| Some((format!("age-{age}/increase_pct"), increase(scheme, JOB, age * HOUR)?));
    (0..laws::LONGEST).map(of).collect()
}

/// By length of the job, on a new VM.
pub(super) fn by_length(name: &str) -> Option<Figures> {
    let scheme = scheme(name)?;
    let of = |hours: usize| {
        Some((format!("hours-{hours}/increase_pct"), increase(scheme, hours * HOUR, 0)?))
    };
    (1..=LONGEST).map(of).collect()
}

fn mode(name: &str) -> Option<DpMode> {
    match name {
        "dp" => Some(DpMode::Conditional),
        "dp-artifact" => Some(DpMode::Artifact),
        _ => None,
    }
}

pub(super) fn is_mode(name: &str) -> bool {
    mode(name).is_some()
}

/// The chunks of a job of five hours, and what it is really expected to take: by the exact chances, whatever
/// the recursion says.
pub(super) fn schedule(name: &str) -> Option<Figures> {
    let survival = survival(SCHEDULED, 0)?;
    let really = problem(&survival, SCHEDULED, 0, Rules::CONDITIONAL);
    let (chunks, says, takes) = if name == "as-printed" {
        // It leaves 32 minutes: they are a chunk of their own.
        let done: Vec<usize> = PRINTED
            .iter()
            .scan(0, |sum, work| {
                *sum += work;
                Some(*sum)
            })
            .collect();
        let next = |left: usize, _: usize| {
            let before = SCHEDULED - left;
            done.iter().find(|end| **end > before).map_or(left, |end| end - before)
        };
        (PRINTED.to_vec(), None, Some(expected(&really, &next).ok()?))
    } else if name == "as-read-out" {
        let own = problem(&survival, SCHEDULED, 0, DpMode::Artifact.into());
        let plan = Plan::of(&own).ok()?;
        (plan.as_read_out(), None, None)
    } else {
        let own = problem(&survival, SCHEDULED, 0, mode(name)?.into());
        let plan = Plan::of(&own).ok()?;
        let takes = expected(&really, &|left, age| plan.next(left, age)).ok()?;
        let chunks = plan.schedule(SCHEDULED, 0).iter().map(|chunk| chunk.work).collect();
        (chunks, Some(plan.makespan()), Some(takes))
    };
    let chunk = |(n, work): (usize, &usize)| (format!("chunk-{}/work_min", n + 1), number(*work));
    let whole = [("sum_min", Some(number(chunks.iter().sum()))), ("says_min", says)];
    let whole = whole.into_iter().chain([("takes_min", takes)]);
    let whole = whole.filter_map(|(name, x)| Some((format!("whole/{name}"), x?)));
    Some(chunks.iter().enumerate().map(chunk).chain(whole).collect())
}

/// Simulated jobs of five hours against what the plan expects of them.
pub(super) fn simulated(name: &str, seed: u64) -> Option<Figures> {
    let survival = survival(SCHEDULED, 0)?;
    let problem = problem(&survival, SCHEDULED, 0, mode(name)?.into());
    let plan = Plan::of(&problem).ok()?;
    let sum: f64 = simulate(&problem, &plan, JOBS, seed).sum();
    #[expect(clippy::cast_precision_loss, reason = "jobs are few")]
    let mean = sum / JOBS as f64;
    let figures = [("simulated_min", mean), ("over_expected", mean / plan.makespan())];
    Some(figures.map(|(name, x)| (format!("job-5/{name}"), x)).into())
}
