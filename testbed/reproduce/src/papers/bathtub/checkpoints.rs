//! Figure 8 and the printed schedule: checkpoints by the dynamic program, and by Young and Daly.

use dormouse_cloud::Lifetimes;
use dormouse_model::DpMode;
use dormouse_policies::dp::{Plan, Problem, Rules, Survival, expected, simulate};
use dormouse_policies::young_daly;
use dormouse_units::Span;

use super::draw::RecordDraw;
use super::evidence::LifetimeEvidence;
use super::{Figures, laws, number};

/// Length of a step in which the plans of checkpoints count time; a checkpoint and a restart take one step each.
const STEP: Span = Span::from_secs(60);
/// Number of one-minute steps in an hour.
const HOUR: usize = 60;
/// Length of the job of Figure 8a, in steps.
const JOB: usize = 4 * HOUR;
/// Length of the job with the printed schedule, in steps.
const SCHEDULED: usize = 5 * HOUR;
/// Longest job of Figure 8b, in hours.
const LONGEST: usize = 9;
/// Number of jobs that are simulated with one seed.
const JOBS: u64 = 10_000;
/// Mean lifetime for which the paper computes its periodic checkpoints.
const MTTF: Span = Span::from_secs(3_600);
/// Work done again under periodic checkpoints in the authors' code, as a fraction of the job's length.
const AGAIN: f64 = 2.0 / 12.0;
/// The printed schedule of the job of five hours: chunks in minutes.
const PRINTED: [usize; 5] = [15, 28, 38, 59, 128];

/// Rule for the times of checkpoints, and way to compute the expected makespan under the rule.
#[derive(Clone, Copy)]
enum CheckpointRule {
    /// Checkpoints by the paper's dynamic program; the expected makespan follows the program's own rules.
    Program(DpMode),
    /// Periodic checkpoints with this period in steps; the expected makespan is exact.
    Period(usize),
    /// Periodic checkpoints, with the expected makespan as in the authors' code: the cost of its checkpoints, and a constant for
    /// the work done again.
    AsTheAuthors,
}

impl CheckpointRule {
    /// Number of steps that a job of `job` steps spends on checkpoints if nothing fails; `None` if that number depends on the age
    /// of the VM.
    fn checkpoints(self, job: usize) -> Option<f64> {
        match self {
            Self::Program(_) => None,
            // The last chunk has no checkpoint.
            Self::Period(steps) => Some(number(job.div_ceil(steps.max(1)).saturating_sub(1))),
            Self::AsTheAuthors => {
                Some(number(job) * STEP.as_secs_f64() / young_daly(STEP, MTTF).as_secs_f64())
            }
        }
    }
}

fn rule_named(name: &str) -> Option<CheckpointRule> {
    let minutes = || young_daly(STEP, MTTF).as_micros().div_ceil(STEP.as_micros());
    Some(match name {
        "dp" => CheckpointRule::Program(DpMode::Conditional),
        "dp-artifact" => CheckpointRule::Program(DpMode::Artifact),
        "young-daly" => CheckpointRule::Period(usize::try_from(minutes()).ok()?),
        "young-daly-artifact" => CheckpointRule::AsTheAuthors,
        _ => return None,
    })
}

/// Default law of Figure 8: that of the authors' simulations.
const LAW: &str = "authors";

/// Name and law of VMs in a case word: `NAME` or `NAME@LAW`.
fn name_and_law(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, LAW))
}

/// Survival probabilities under a law, for all ages that matter to a job of `job` steps that begins at the age `age`, in steps.
fn survival_for(law: &Lifetimes, job: usize, age: usize) -> Survival {
    let ages = Problem::ages(job, 1, 1, age);
    Survival::new(&|hours| law.law().cdf(hours), STEP, ages)
}

const fn problem(survival: &Survival, job: usize, age: usize, rules: Rules) -> Problem<'_> {
    Problem { job, checkpoint: 1, restart: 1, age, rules, survival }
}

/// Expected makespans in minutes of a job of `job` minutes that begins on a VM of each of these ages in minutes; `None` if one
/// can't be computed.
fn by_age(scheme: CheckpointRule, law: &Lifetimes, job: usize, ages: &[usize]) -> Option<Vec<f64>> {
    let oldest = ages.last().copied()?;
    let all = survival_for(law, job, oldest);
    if let CheckpointRule::Program(mode) = scheme
        && let Ok(plan) = Plan::solve(&problem(&all, job, 0, mode.into()))
        && let Some(found) = ages.iter().map(|age| plan.makespan_at(*age)).collect()
    {
        // If a failure leads to a new VM, one table has the jobs of all ages.
        return Some(found);
    }
    let of = |age: &usize| match scheme {
        CheckpointRule::Program(mode) => {
            let survival = survival_for(law, job, *age);
            Some(Plan::solve(&problem(&survival, job, *age, mode.into())).ok()?.makespan())
        }
        CheckpointRule::Period(steps) => {
            expected(&problem(&all, job, *age, Rules::CONDITIONAL), &|_, _| steps).ok()
        }
        CheckpointRule::AsTheAuthors => {
            let interval = young_daly(STEP, MTTF);
            let more = STEP.as_secs_f64() / interval.as_secs_f64() + AGAIN;
            Some(number(job) * (1.0 + more))
        }
    };
    ages.iter().map(of).collect()
}

/// Per cent by which a job takes longer than its own length; both are in steps of a minute.
fn percent_over(takes: f64, job: usize) -> f64 {
    100.0 * (takes / number(job) - 1.0)
}

/// Figures of a job of four hours by the age of its VM: per cent by which it takes longer, and the
/// part of that due to checkpoints.
pub(super) fn by_start(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let (name, law) = name_and_law(name);
    let ages: Vec<usize> = (0..laws::LONGEST).map(|hours| hours * HOUR).collect();
    let scheme = rule_named(name)?;
    let all = by_age(scheme, &evidence.law(law, draw)?, JOB, &ages)?;
    let increase = |(age, takes): (usize, &f64)| {
        (format!("age-{age}/increase_pct"), percent_over(*takes, JOB))
    };
    let mut figures: Figures = all.iter().enumerate().map(increase).collect();
    if let Some(checkpoints) = scheme.checkpoints(JOB) {
        let share = |(age, takes): (usize, &f64)| {
            (format!("age-{age}/checkpoint_share"), checkpoints / (takes - number(JOB)))
        };
        figures.extend(all.iter().enumerate().map(share));
    }
    Some(figures)
}

/// Figures of jobs on a new VM, by their length.
pub(super) fn by_length(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let (name, law) = name_and_law(name);
    let (scheme, law) = (rule_named(name)?, evidence.law(law, draw)?);
    let of = |hours: usize| {
        let job = hours * HOUR;
        let takes = *by_age(scheme, &law, job, &[0])?.first()?;
        Some((format!("hours-{hours}/increase_pct"), percent_over(takes, job)))
    };
    (1..=LONGEST).map(of).collect()
}

fn mode_named(name: &str) -> Option<DpMode> {
    match name {
        "dp" => Some(DpMode::Conditional),
        "dp-artifact" => Some(DpMode::Artifact),
        _ => None,
    }
}

/// The chunks of work between the checkpoints of a job of five hours, and the job's exact expected time, computed without the
/// recursion. The chunks are always those of the authors' law.
pub(super) fn schedule(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let survival = survival_for(&evidence.law(LAW, draw)?, SCHEDULED, 0);
    let really = problem(&survival, SCHEDULED, 0, Rules::CONDITIONAL);
    let (chunks, says, takes) = if name == "as-printed" {
        // It leaves 32 minutes, which are a chunk of their own.
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
        let plan = Plan::solve(&own).ok()?;
        (plan.as_read_out(), None, None)
    } else {
        let own = problem(&survival, SCHEDULED, 0, mode_named(name)?.into());
        let plan = Plan::solve(&own).ok()?;
        let takes = expected(&really, &|left, age| plan.next(left, age)).ok()?;
        let chunks = plan.schedule(SCHEDULED, 0).iter().map(|chunk| chunk.work).collect();
        (chunks, Some(plan.makespan()), Some(takes))
    };
    let chunk = |(n, work): (usize, &usize)| (format!("chunk-{}/work_min", n + 1), number(*work));
    let sum = number(chunks.iter().sum());
    let of_law = [("says_min", says), ("takes_min", takes)].into_iter();
    let mut figures: Figures =
        of_law.filter_map(|(name, x)| Some((format!("whole/{name}"), x?))).collect();
    if draw == RecordDraw::Whole {
        figures.extend(chunks.iter().enumerate().map(chunk));
        figures.insert("whole/sum_min".to_owned(), sum);
    }
    Some(figures)
}

/// Mean makespan of simulated jobs of five hours in minutes, and its ratio to the makespan that the plan expects; `None` if there
/// is no such case.
pub(super) fn simulated(name: &str, evidence: &LifetimeEvidence, seed: u64) -> Option<Figures> {
    let survival = survival_for(&evidence.law(LAW, RecordDraw::Whole)?, SCHEDULED, 0);
    let problem = problem(&survival, SCHEDULED, 0, mode_named(name)?.into());
    let plan = Plan::solve(&problem).ok()?;
    let sum: f64 = simulate(&problem, &plan, JOBS, seed).sum();
    #[expect(clippy::cast_precision_loss, reason = "jobs are few")]
    let mean = sum / JOBS as f64;
    let figures = [("simulated_min", mean), ("over_expected", mean / plan.makespan())];
    Some(figures.map(|(name, x)| (format!("job-5/{name}"), x)).into())
}
